import { parseQuantity } from '../../../model/quantities.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { Operations } from '../../../services/operations.ts';
import type { SandboxView } from '../../../actors/views.ts';
import { compatibleId, restIdOf, type NamedSandbox } from '../sandbox-id.ts';
import { isTokenGood, type ConductDeps } from '../services/conduct.ts';
import { ENVD_VERSION } from '../services/services.ts';

/** Clients require an end date. */
const NEVER = '9999-12-31T23:59:59.000Z';
const CLIENT = 'sandpool';
const MEBIBYTE = 2 ** 20;

export interface ShowTerms {
  readonly operations: Pick<Operations, 'sandboxTokens'>;
  readonly gate: ConductDeps['gate'];
  readonly caller: Caller;
  readonly domain: string;
}

export const domainOf = (
  { domain }: { readonly domain: string | undefined },
  base: string,
): string => domain ?? new URL(base).host.replace(/^api\./, '').replace(LOOPBACK, 'localhost');

/** URL parsers reject a host name that ends in an address. */
const LOOPBACK = /^(?:127(?:\.\d+){3}|\[::1\])(?=:|$)/;

/** Empty if rules permit the key nothing in the sandbox. A token is subject to its key's rules. */
export const tokensOf = (
  { operations, gate, caller }: Omit<ShowTerms, 'domain'>,
  { id, clusterId }: NamedSandbox,
) => {
  if (!isTokenGood(gate, caller, restIdOf({ id, clusterId }))) return {};
  const { access, traffic } = operations.sandboxTokens(caller, id, clusterId);
  return { envdAccessToken: access, trafficAccessToken: traffic };
};

export const presentSandbox = (
  { id, poolName }: Pick<SandboxView, 'id' | 'poolName'>,
  { domain, ...terms }: ShowTerms,
) => ({
  sandboxID: compatibleId(id),
  templateID: poolName,
  clientID: CLIENT,
  envdVersion: ENVD_VERSION,
  ...tokensOf(terms, { id, clusterId: undefined }),
  domain,
});

export const presentListed = (view: SandboxView) => ({
  sandboxID: compatibleId(view.id),
  templateID: view.poolName,
  clientID: CLIENT,
  envdVersion: ENVD_VERSION,
  startedAt: new Date(view.claimedAt ?? 0).toISOString(),
  endAt: endOf(view),
  state: view.paused ? 'paused' : 'running',
  cpuCount: Math.max(1, Math.ceil(parseQuantity(view.cpu) ?? 1)),
  memoryMB: Math.ceil((parseQuantity(view.memory) ?? 0) / MEBIBYTE),
  diskSizeMB: 0,
  metadata: view.metadata ?? {},
});

export const presentDetail = (view: SandboxView, terms: ShowTerms) => ({
  ...presentSandbox(view, terms),
  ...presentListed(view),
  lifecycle: {
    autoResume: view.autoResume ?? false,
    onTimeout: view.autoPause ? ('pause' as const) : ('kill' as const),
  },
});

const endOf = ({ endsAt, idleExpiresAt }: SandboxView): string => {
  const at = Math.min(
    endsAt ?? Number.POSITIVE_INFINITY,
    idleExpiresAt ?? Number.POSITIVE_INFINITY,
  );
  return at === Number.POSITIVE_INFINITY ? NEVER : new Date(at).toISOString();
};
