import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { Coordination } from '../../../contracts/coordination.ts';
import { InstanceGone, type SandboxDriver } from '../../../contracts/sandbox-driver.ts';
import type { ApiKeyRecord } from '../../../model/api-key.ts';
import { invalidToken, sandboxNotRunning } from '../../../model/refusals.ts';
import { tooManyTerminals } from '../../../model/limit-refusals.ts';
import { tenantKey, type Caller } from '../../../model/tenant.ts';
import type { ClaimEnv } from '../claim-env.ts';
import { runningSandbox } from './exec-in-sandbox.ts';
import type { OpenTerminal, SandboxOperations } from './sandbox-operations.ts';
import { currentSandbox } from './find-sandbox.ts';
import { sandboxPermits } from './sandbox-permits.ts';

export interface TerminalDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly clusterId: string;
  readonly apiKeys: TokenKeys;
}

type KeyOwner = Pick<ApiKeyRecord, 'keyId' | 'namespace' | 'team' | 'user' | 'role'>;

/** `overLink`: the token came over a link to a manager. */
export interface TokenKeys {
  readonly good: (keyId: string, overLink: boolean) => Promise<KeyOwner | undefined>;
  readonly find: (keyId: string) => KeyOwner | undefined;
  readonly followEnd: (keyId: string, ended: () => void, overLink: boolean) => () => void;
  /** Caller of a manager's key, known only to this replica. */
  readonly linked?: (keyId: string) => Caller | undefined;
  readonly remember?: (linked: Caller) => void;
}

export type OpeningDeps = TerminalDeps & {
  readonly mostOfTenant: number;
  readonly claimEnv: Pick<ClaimEnv, 'over'>;
};

const TOKEN_LIFETIME_MS = 30_000;
/** Sandbox, key, and linked caller. */
const VALUE = /^(\S+) (\S+)(?: (.*))?$/s;
const MOST_TERMINALS = 16;
const SHELL = ['/bin/sh', '-c', 'exec "$(command -v bash || echo sh)" -l'];
const WATCH_MS = 3_600_000;

/**
 * Valid once, for 30 seconds (operation `POST /sandboxes/{sandboxId}/exec-token`). At most 64
 * unused tokens of a sandbox, 512 of a tenant.
 */
export const createExecToken =
  (deps: TerminalDeps): SandboxOperations['createExecToken'] =>
  async (caller, sandboxId) => {
    await runningSandbox(deps.supervisor, caller, sandboxId);
    const linked = deps.apiKeys.linked?.(caller.keyId);
    const carried = linked ? ` ${JSON.stringify(linked)}` : ''; // for a replica that redeems it
    return await deps.coordination.issueToken(
      `${sandboxId} ${caller.keyId}${carried}`,
      TOKEN_LIFETIME_MS,
      { sandbox: sandboxId, tenant: caller },
    );
  };

/**
 * Redeems the token only after the sandbox runs and has a free permit, so that a client can retry.
 * The terminal ends with the token's key. A token of a manager's key is valid only over that
 * manager's links, because nobody else knows when such a key ends.
 */
export const openTerminal = (deps: OpeningDeps): SandboxOperations['openTerminal'] => {
  const enter = sandboxPermits(
    { sandbox: MOST_TERMINALS, tenant: deps.mostOfTenant },
    tooManyTerminals,
  );
  return async ({ clusterId, sandboxId, token, cols, rows, overLink = false }) => {
    const { supervisor, driver, coordination, claimEnv } = deps;
    const key = await keyOfToken(deps, { clusterId, sandboxId, token, overLink });
    const sandbox = await currentSandbox(supervisor, sandboxId, key.namespace);
    const status = sandbox?.status ?? 'Completed';
    if (status !== 'Running') throw sandboxNotRunning(status);
    if (sandbox) await supervisor.pauses.awake(sandbox);
    const env = claimEnv.over(sandbox?.context.record);
    const leave = enter(sandboxId, tenantKey(key));
    try {
      // Only one of several concurrent requests with the token continues.
      if ((await coordination.redeemToken(token)) === undefined) throw invalidToken();
      const terminal = await driver.attach(sandboxId, { argv: SHELL, cols, rows, env });
      return opened(deps, { sandboxId, keyId: key.keyId, overLink, terminal, leave });
    } catch (error) {
      leave();
      if (error instanceof InstanceGone) throw sandboxNotRunning('Stopping');
      throw error;
    }
  };
};

/** Redeems the token only if it belongs to another sandbox or cluster. */
const keyOfToken = async (
  { coordination, apiKeys, clusterId: ownId }: OpeningDeps,
  {
    clusterId,
    sandboxId,
    token,
    overLink,
  }: {
    readonly clusterId: string;
    readonly sandboxId: string;
    readonly token: string;
    readonly overLink: boolean;
  },
): Promise<KeyOwner> => {
  const value = await coordination.peekToken(token);
  const [, meant, keyId = '', carried] = VALUE.exec(value ?? '') ?? [];
  if (meant !== sandboxId || clusterId !== ownId) {
    await coordination.redeemToken(token);
    throw invalidToken();
  }
  if (carried !== undefined) {
    if (!overLink) throw invalidToken();
    apiKeys.remember?.(JSON.parse(carried) as Caller);
  }
  const key = await apiKeys.good(keyId, overLink);
  if (!key) throw invalidToken();
  return key;
};

interface Opened {
  readonly sandboxId: string;
  readonly keyId: string;
  readonly overLink: boolean;
  readonly terminal: OpenTerminal['terminal'];
  readonly leave: () => void;
}

const opened = (
  { supervisor, clock, apiKeys }: TerminalDeps,
  { sandboxId, keyId, overLink, terminal, leave }: Opened,
): OpenTerminal => {
  let open = true;
  let forget = (): void => undefined;
  const revoked = new Promise<'key-revoked'>((resolve) => {
    forget = apiKeys.followEnd(keyId, () => resolve('key-revoked'), overLink);
  });
  const close = (): void => {
    if (!open) return;
    open = false;
    forget();
    leave();
    terminal.close();
    supervisor.wake(sandboxId);
  };
  const touch = (): void => {
    supervisor.send(sandboxId, { type: 'ACTIVE', now: clock.now() });
  };
  touch();
  return {
    caller: callerOf(apiKeys.find(keyId)),
    linkedKeyId: apiKeys.linked?.(keyId)?.keyId,
    terminal,
    touch,
    close,
    ended: Promise.race([
      revoked,
      untilEnded(supervisor, clock, { sandboxId, isOpen: () => open }),
    ]),
  };
};

const callerOf = (key: KeyOwner | undefined): Caller | undefined =>
  key && {
    namespace: key.namespace,
    team: key.team,
    user: key.user,
    role: key.role,
    keyId: key.keyId,
  };

/** Settles when the sandbox leaves Running, or the terminal closes. */
const untilEnded = async (
  supervisor: Supervisor,
  clock: Clock,
  { sandboxId, isOpen }: { sandboxId: string; isOpen: () => boolean },
): Promise<'sandbox-ended'> => {
  for (;;) {
    const snapshot = await supervisor.until(
      sandboxId,
      (seen) => seen?.status !== 'Running' || !isOpen(),
      clock.now() + WATCH_MS,
    );
    if (snapshot?.status !== 'Running' || !isOpen()) return 'sandbox-ended';
  }
};
