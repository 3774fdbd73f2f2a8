import { hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Assembly } from './assembly.ts';
import type { Config } from '../config/config.ts';
import type { AuditSink } from '../../contracts/audit.ts';
import type { Log } from '../../contracts/log.ts';
import type { ControlCommands } from '../control/control-server.ts';
import { OpenIdProvider } from '../../services/identity/openid-provider.ts';
import { operatorEntry } from '../../services/identity/operator-entry.ts';
import { OperatorsFile } from '../../services/identity/operators-file.ts';
import { argon2Passwords } from '../../services/identity/passwords.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import { ConsoleAccess } from '../../services/console/console-access.ts';
import { LoginLimits } from '../../services/console/login-limits.ts';
import { OperatorCommands } from '../../services/console/operator-commands.ts';
import { SessionCommands } from '../../services/console/session-commands.ts';
import { controlCommands } from '../commands/console-commands.ts';

export interface ConsoleParts {
  readonly access: ConsoleAccess;
  readonly url: string | undefined;
  readonly commands: ControlCommands;
  /**
   * Makes a single-use login link for the owner of the data folder. Undefined if none is available,
   * for example if operators exist.
   */
  readonly ownersLinkAt: (address: string) => Promise<string | undefined>;
  readonly severalDecide: () => boolean;
}

/** Undefined if the console is off. */
export const openConsole = (
  config: Config,
  {
    parts,
    log,
    audit,
    addressOf,
  }: {
    parts: Pick<Assembly, 'clock' | 'coordination' | 'pepper'>;
    log: Log;
    audit: AuditSink | undefined;
    /** Empty before the daemon listens. */
    addressOf: () => string;
  },
): ConsoleParts | undefined => {
  if (config.console.mode === 'off') return undefined;
  const { clock, coordination, pepper } = parts;
  const operators = new OperatorsFile(operatorsFile(config));
  const passwords = argon2Passwords();
  const access = new ConsoleAccess({
    sessions: coordination,
    tokens: coordination,
    operators,
    passwords,
    limits: new LoginLimits(coordination, keyOf(pepper, 'sandpool console devices')),
    provider: providerOf(config, log),
    sealKey: keyOf(pepper, 'sandpool console logins'),
    clock,
    audit,
  });
  const changes = new OperatorCommands({
    operators,
    change: config.assembly === 'embedded' ? operators : undefined,
    entryOf: (given) => operatorEntry(given, passwords),
    sessions: coordination,
    clock,
  });
  const linkAt = async (address: string, as?: string): Promise<string> =>
    `${config.console.url ?? nearby(address)}/console/link?token=${await access.issueLink(as)}`;
  return {
    access,
    url: config.console.url,
    ownersLinkAt: (address) =>
      linkAt(address).catch((error: unknown) => {
        if (error instanceof Refusal) return undefined;
        throw error;
      }),
    severalDecide: () =>
      config.openId.issuer !== undefined ||
      operators.list().filter(({ name, role }) => role !== 'viewer' && !operators.isLocked(name))
        .length > 1,
    commands: controlCommands({
      linkFor: (as) => linkAt(addressOf(), as),
      changes,
      sessions: new SessionCommands(coordination),
      audit,
    }),
  };
};

/** The console only accepts loopback addresses. */
const nearby = (address: string): string => {
  if (address === '') throw unavailable('the daemon is not listening yet');
  const url = new URL(address);
  if (!/^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname)) url.hostname = 'localhost';
  return url.origin;
};

/** Replicas share the operators in their Secret. */
const operatorsFile = ({ assembly, dataDir, secretsDir }: Config): string =>
  assembly === 'embedded'
    ? join(dataDir, 'keys', 'operators.json')
    : join(secretsDir ?? '', 'operators.json');

const keyOf = (pepper: Buffer, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', pepper, '', purpose, 32));

const providerOf = ({ openId }: Config, log: Log): OpenIdProvider | undefined => {
  const { issuer, clientId, clientSecretFile } = openId;
  if (issuer === undefined || clientId === undefined) return undefined;
  return new OpenIdProvider(
    {
      issuer,
      clientId,
      clientSecret:
        clientSecretFile === undefined ? undefined : readFileSync(clientSecretFile, 'utf8').trim(),
      scopes: openId.scopes,
      roleClaim: openId.roleClaim,
      roles: { viewer: openId.viewers, operator: openId.operators, admin: openId.admins },
      userClaim: openId.userClaim,
    },
    log,
  );
};
