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

/** The owner of a key, as far as terminals go by it. */
type KeyOwner = Pick<ApiKeyRecord, 'keyId' | 'namespace' | 'team' | 'user' | 'role'>;

/**
 * Says whose the keys are that tokens were issued to; see ApiKeyMirror. `overLink`: who brings the
 * token comes over a link to a manager.
 */
export interface TokenKeys {
  readonly good: (keyId: string, overLink: boolean) => Promise<KeyOwner | undefined>;
  readonly find: (keyId: string) => KeyOwner | undefined;
  readonly followEnd: (keyId: string, ended: () => void, overLink: boolean) => () => void;
  /** The caller of a manager's key, who is known to this replica alone; absent: there are none. */
  readonly linked?: (keyId: string) => Caller | undefined;
  readonly remember?: (linked: Caller) => void;
}

/** Opens terminals, which have the variables of their sandbox's claim. */
export type OpeningDeps = TerminalDeps & {
  /** Bounds how many of one tenant are open at one time on this replica. */
  readonly mostOfTenant: number;
  readonly claimEnv: Pick<ClaimEnv, 'over'>;
};

const TOKEN_LIFETIME_MS = 30_000;
/** Matches what a token stands for: a sandbox, a key, and a linked caller. */
const VALUE = /^(\S+) (\S+)(?: (.*))?$/s;
const MOST_TERMINALS = 16;
const SHELL = ['/bin/sh', '-c', 'exec "$(command -v bash || echo sh)" -l'];
const WATCH_MS = 3_600_000;

/**
 * Issues a single-use token of 30 seconds for a terminal (operation `POST
 * /sandboxes/{sandboxId}/exec-token`). At most 64 wait of a sandbox, 512 of a tenant.
 */
export const createExecToken =
  (deps: TerminalDeps): SandboxOperations['createExecToken'] =>
  async (caller, sandboxId) => {
    await runningSandbox(deps.supervisor, caller, sandboxId);
    const linked = deps.apiKeys.linked?.(caller.keyId);
    const carried = linked ? ` ${JSON.stringify(linked)}` : ''; // another replica may redeem it
    return await deps.coordination.issueToken(
      `${sandboxId} ${caller.keyId}${carried}`,
      TOKEN_LIFETIME_MS,
      { sandbox: sandboxId, tenant: caller },
    );
  };

/**
 * Opens a terminal for a token. The token is used up once the sandbox is known to run and has room
 * for one more; whoever is refused before that may bring it again, but for one who brought it to
 * another sandbox. At most 16 a sandbox, and `mostOfTenant` of the token's tenant
 * (TOO_MANY_TERMINALS). It ends with the key that the token was issued to, and is refused like an
 * unknown token where that is gone. One that was issued to a key of a manager is good over its
 * links alone: nobody else knows when such a key ends.
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
      // Of several who bring it at once, one gets further.
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

/** The key that the token was issued to. The token stays good but where it does not belong. */
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

/** Settles when the sandbox has left Running, or the terminal was closed. */
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
