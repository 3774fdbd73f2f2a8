import { z } from 'zod';
import { maybe, MAX_REFERENCE, queryInteger, text } from '../../corridor/common-schema.ts';
import { metadata, variables } from '../../resources/sandboxes/claim-schema.ts';
import type { PathParams } from '../../corridor/route.ts';
import { bytesOfPairs, MOST_VARIABLE_BYTES } from '../../../model/claim-terms.ts';
import { MAX_DURATION_MS } from '../../../model/durations.ts';
import { isInstanceId, type InstanceId } from '../../../model/identifiers.ts';
import { poolNotFound, sandboxNotFound } from '../../../model/refusals.ts';

const timeout = z
  .int()
  .min(0)
  .max(MAX_DURATION_MS / 1_000);

export const NewSandbox = z.object({
  templateID: text(2 * MAX_REFERENCE, 1),
  timeout: maybe(timeout),
  metadata: maybe(metadata),
  envVars: maybe(
    variables(MOST_VARIABLE_BYTES).refine(
      (env) => bytesOfPairs(env) <= MOST_VARIABLE_BYTES,
      `must have names and values of at most ${MOST_VARIABLE_BYTES} bytes together`,
    ),
  ),
  autoPause: maybe(z.boolean()),
  autoPauseMemory: maybe(z.boolean()),
  autoResume: maybe(z.object({ enabled: z.boolean() })),
  secure: maybe(z.boolean()),
  allow_internet_access: maybe(z.boolean()),
  network: maybe(
    z.looseObject({
      allowPublicTraffic: maybe(z.boolean()),
      denyOut: maybe(z.array(z.string())),
    }),
  ),
  volumeMounts: maybe(z.unknown()),
  mcp: maybe(z.unknown()),
  iam: maybe(z.unknown()),
});
export type NewSandboxBody = z.infer<typeof NewSandbox>;

/** `adopt` has already turned the id into a UUID. */
export const SandboxPath: PathParams<{ sandboxId: string }> = {
  schema: z.object({ sandboxId: z.string().refine(isInstanceId) }),
  otherwise: sandboxNotFound,
  names: { sandboxId: 'sandbox' },
};

export const TemplatePath: PathParams<{ name: string }> = {
  schema: z.object({ name: z.string() }),
  otherwise: ({ name = '' }) => poolNotFound(name),
  names: { name: 'pool' },
};

export const Template = z.object({ templateID: z.string(), public: z.boolean() });

export const NewTimeout = z.object({ timeout });

export const Connection = z.object({ timeout: maybe(timeout), memory: maybe(z.boolean()) });

export const Pause = z.object({ memory: maybe(z.boolean()) });

const STATES = ['running', 'paused'] as const;

/** Clients encode names and values twice. */
const encodedPairs = z.string().transform((form, context) => {
  try {
    const pairs = [...new URLSearchParams(form)].map(([key, value]) =>
      [key, value].map(decodeURIComponent),
    );
    const result = metadata.safeParse(Object.fromEntries(pairs));
    // A dropped pair would widen the list.
    if (result.success && Object.keys(result.data).length === pairs.length) return result.data;
  } catch {
    // a malformed escape
  }
  context.addIssue('must be pairs of metadata, each key once');
  return z.NEVER;
});

/** Claim time, sandbox, and the number before it, also by cluster. */
const TOKEN = /^(\d{1,15})\.([0-9a-f-]{36})\.(\d{1,9})((?:\.[0-9a-z]{1,25}:\d{1,9}){0,100})$/;
export const MOST_PLACE_MS = 10 ** 15 - 1;
export const MOST_OFFSET = 10 ** 9 - 1;
/** The clusters with the highest counts. */
const MOST_OTHERS = 100;

export interface Place {
  readonly claimedAt: number;
  readonly id: InstanceId;
  readonly offset: number;
  readonly others?: ReadonlyMap<string, number>;
}

export const placeIn = (given: string): Place | undefined => {
  const [, at, id = '', offset, others = ''] =
    TOKEN.exec(Buffer.from(given, 'base64url').toString()) ?? [];
  if (!isInstanceId(id)) return undefined;
  const pairs = others
    .split('.')
    .slice(1)
    .map((text) => text.split(':'))
    .map(([clusterId = '', count]): [string, number] => [clusterId, Number(count)]);
  return { claimedAt: Number(at), id, offset: Number(offset), others: new Map(pairs) };
};

const place = z.string().transform((given, context) => {
  const found = placeIn(given);
  if (found) return found;
  context.addIssue('must be the x-next-token of an earlier answer');
  return z.NEVER;
});
export const tokenOf = ({ claimedAt, id, offset, others = new Map() }: Place): string => {
  const told = [...others]
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST_OTHERS)
    .map(([clusterId, count]) => `.${clusterId}:${count}`);
  return Buffer.from(`${claimedAt}.${id}.${offset}${told.join('')}`).toString('base64url');
};

export const ListQuery = z.object({
  metadata: maybe(encodedPairs),
  state: maybe(
    z
      .string()
      .transform((list) => list.split(','))
      .pipe(z.array(z.enum(STATES)).min(1)),
  ),
  template: maybe(text(MAX_REFERENCE, 1)),
  startedAfter: maybe(z.iso.datetime({ offset: true }).transform((moment) => Date.parse(moment))),
  order: maybe(z.enum(['asc', 'desc'])),
  limit: queryInteger(1, 100).default(100),
  nextToken: maybe(place),
});
export type ListRequest = z.infer<typeof ListQuery>;

export const ShownSandbox = z.object({
  sandboxID: z.string(),
  templateID: z.string(),
  clientID: z.string(),
  envdVersion: z.string(),
  envdAccessToken: z.string().optional(),
  trafficAccessToken: z.string().optional(),
  domain: z.string(),
});

export const ListedSandbox = z.object({
  sandboxID: z.string(),
  templateID: z.string(),
  clientID: z.string(),
  envdVersion: z.string(),
  startedAt: z.string(),
  endAt: z.string(),
  state: z.enum(STATES),
  cpuCount: z.int(),
  memoryMB: z.int(),
  diskSizeMB: z.int(),
  metadata: z.record(z.string(), z.string()),
});

export const SandboxDetail = ShownSandbox.extend({
  ...ListedSandbox.shape,
  lifecycle: z.object({ autoResume: z.boolean(), onTimeout: z.enum(['kill', 'pause']) }),
});
