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

/** A cursor of one cluster or of several. */
const cursor = z
  .string()
  .refine((given) => isCursor(given) || positionsIn(given) !== undefined, 'must be a `nextCursor`')
  .meta({ maxLength: MOST_POSITIONS_TEXT });

export const AuditQuery = z.object({
  clusterID,
  limit,
  cursor: maybe(cursor).describe('`nextCursor` of the answer before.'),
  namespace: label,
  team: label,
  user: label,
  keyId: maybe(text(64, 1)),
  operation: maybe(text(64, 1)).describe('An operationId.'),
  outcome: maybe(z.enum(['done', 'refused', 'failed'])).describe(
    'By the status: below 400, below 500, above.',
  ),
});

const named = z.record(z.string(), z.string());

export const AuditRecord = z
  .object({
    seq: z.int().describe("Its number in the chain of its replica's folder."),
    time: timestamp,
    replica: z.string(),
    kind: z
      .string()
      .describe(
        '`write`; `begin` and `end` of a run; `lost`: lines that could not be written; ' +
          '`read` and `open`: so many reads by an admin, or requests to an endpoint, of one ' +
          'minute; `omitted`: further ones of a key, or without a good one. There may be ' +
          'more some day.',
      ),
    requestId: z.string().optional(),
    via: z.string().optional().describe('Not over the API: `control-socket`.'),
    namespace: z
      .string()
      .optional()
      .describe('Who: left out, as what follows, where there was no good key.'),
    team: z.string().optional(),
    user: z.string().optional(),
    role: z.string().optional(),
    keyId: z.string().optional(),
    operation: z.string().optional().describe('The operationId.'),
    params: named.optional().describe('What stood in the path.'),
    target: named
      .optional()
      .describe('Names and ids of what it is about, of the body and the answer.'),
    status: z.int().optional(),
    errorCode: z.string().optional(),
    replayed: z
      .boolean()
      .optional()
      .describe('Of an `Idempotency-Key`: the answer was given before, and nothing done.'),
    count: z.int().optional().describe('With `lost`, `omitted`, `read` and `open`.'),
    why: z.string().optional().describe('With `lost` and `omitted`.'),
    since: timestamp.optional().describe('With `lost`.'),
    after: z
      .string()
      .optional()
      .describe(
        'With `begin`, how the run before ended: `end`, `crash`, or `missing` where lines ' +
          'are gone.',
      ),
    missing: z.int().optional().describe('How many those are.'),
    boot: z.string().optional().describe('With `begin`: of the machine.'),
    version: z.string().optional().describe('With `begin`.'),
    pid: z.int().optional().describe('The same.'),
    prev: z.string().describe('Hash of the line before it.'),
    hash: z.string().describe('Its own: SHA-256.'),
    cursor: maybe(z.string()).describe(
      'The lines before it follow with it as `cursor`, of its own cluster.',
    ),
    clusterID: maybe(z.string()).describe('Where a manager shows it: of whose cluster it is.'),
  })
  .meta({ id: 'AuditRecord' });

export const AuditPage = z
  .object({
    items: z.array(AuditRecord).describe('The newest first.'),
    nextCursor: z.string().optional().describe('There may be older ones: ask with it as `cursor`.'),
    incomplete,
  })
  .meta({ id: 'AuditPage' });

export type AuditRecordWire = z.infer<typeof AuditRecord>;
