import { z } from 'zod';
import { MOST_POSITIONS_TEXT, positionsIn } from '../../../model/fleet/cluster-positions.ts';
import {
  clusterID,
  incomplete,
  limit,
  maybe,
  text,
  timestamp,
} from '../../corridor/common-schema.ts';

const label = maybe(text(63, 1));

/** One or two 64-bit numbers, depending on the store. */
const CURSOR = /^[0-9]{1,20}(-[0-9]{1,20})?$/;
const isCursor = (given: string): boolean =>
  CURSOR.test(given) && given.split('-').every((part) => BigInt(part) < 2n ** 64n);

const cursor = z
  .string()
  .refine((given) => isCursor(given) || positionsIn(given) !== undefined, 'must be a `nextCursor`')
  .meta({ maxLength: MOST_POSITIONS_TEXT });

export const AuditQuery = z.object({
  clusterID,
  limit,
  cursor: maybe(cursor).describe('`nextCursor` of the previous page.'),
  namespace: label,
  team: label,
  user: label,
  keyId: maybe(text(64, 1)),
  operation: maybe(text(64, 1)).describe('operationId of the request.'),
  outcome: maybe(z.enum(['done', 'refused', 'failed'])).describe(
    'By status: `done` is below 400, `refused` below 500, `failed` all others.',
  ),
});

const named = z.record(z.string(), z.string());

export const AuditRecord = z
  .object({
    seq: z.int().describe("Number of the line in the chain of its replica's folder."),
    time: timestamp,
    replica: z.string(),
    kind: z
      .string()
      .describe(
        '`write`; `begin` and `end` of a run; `lost`: lines that could not be written; ' +
          '`read` and `open`: the number of reads by an admin, or of requests to an endpoint, ' +
          'in one minute; `omitted`: the number of further lines of a key, or of requests ' +
          'without a valid key. More kinds may be added.',
      ),
    requestId: z.string().optional(),
    via: z.string().optional().describe('`control-socket` if the request did not use the API.'),
    namespace: z
      .string()
      .optional()
      .describe(
        "The caller's namespace. This and the next four fields are absent if the request had " +
          'no valid key.',
      ),
    team: z.string().optional(),
    user: z.string().optional(),
    role: z.string().optional(),
    keyId: z.string().optional(),
    operation: z.string().optional().describe('operationId of the request.'),
    params: named.optional().describe('Parameters in the path.'),
    target: named
      .optional()
      .describe('Names and ids of the affected resources, from the body and the answer.'),
    status: z.int().optional(),
    errorCode: z.string().optional(),
    replayed: z
      .boolean()
      .optional()
      .describe(
        'The answer to an earlier request with this `Idempotency-Key` was sent again, and ' +
          'nothing was done.',
      ),
    count: z.int().optional().describe('For `lost`, `omitted`, `read` and `open`: how many.'),
    why: z.string().optional().describe('For `lost` and `omitted`: the reason.'),
    since: timestamp.optional().describe('For `lost`: time of the first lost line.'),
    after: z
      .string()
      .optional()
      .describe(
        'For `begin`: how the previous run ended: `end`, `crash`, or `missing` if lines are ' +
          'missing.',
      ),
    missing: z.int().optional().describe('Number of missing lines.'),
    boot: z.string().optional().describe('For `begin`: boot id of the machine.'),
    version: z.string().optional().describe('For `begin`: version of the daemon.'),
    pid: z.int().optional().describe('For `begin`: process id of the daemon.'),
    prev: z.string().describe('Hash of the previous line.'),
    hash: z.string().describe('Hash of this line, SHA-256.'),
    cursor: maybe(z.string()).describe(
      'Use it as `cursor` to get the earlier lines of the same cluster.',
    ),
    clusterID: maybe(z.string()).describe('Cluster of the line. Set only by a manager.'),
  })
  .meta({ id: 'AuditRecord' });

export const AuditPage = z
  .object({
    items: z.array(AuditRecord).describe('Newest first.'),
    nextCursor: z
      .string()
      .optional()
      .describe('Use it as `cursor` to get older lines. Absent if there are no older lines.'),
    incomplete,
  })
  .meta({ id: 'AuditPage' });

export type AuditRecordWire = z.infer<typeof AuditRecord>;
