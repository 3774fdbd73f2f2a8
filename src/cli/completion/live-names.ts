import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { ConnectionOptions } from '../common/connection.ts';
import type { CliContext } from '../common/context.ts';

export interface Candidate {
  readonly word: string;
  readonly about?: string;
}

export type NameKind =
  | 'sandbox'
  | 'pool'
  | 'env'
  | 'member'
  | 'group'
  | 'key'
  | 'template'
  | 'instance-type'
  | 'process';

/**
 * Names of existing things; members, groups and processes of `of`. Empty if the daemon is away,
 * slow or refuses. Never rejects.
 */
export type LiveNames = (kind: NameKind, of?: string) => Promise<readonly Candidate[]>;

/** A person waits after pressing TAB. */
const DEADLINE_MS = 700;
const MOST = 200;

/** Asks the daemon that the words before the cursor name, otherwise the local one. */
export const liveNames =
  (words: readonly string[], context: CliContext): LiveNames =>
  async (kind, of = '') => {
    try {
      const { connect } = await import('../common/connection.ts');
      const api = await connect(connectionIn(words), context);
      try {
        return await ASK[kind](api, AbortSignal.timeout(DEADLINE_MS), of);
      } finally {
        api.close();
      }
    } catch {
      return []; // a completion must not print errors
    }
  };

const ASK: Readonly<
  Record<
    NameKind,
    (api: SandpoolClient, signal: AbortSignal, of: string) => Promise<readonly Candidate[]>
  >
> = {
  sandbox: async (api, signal) =>
    (
      await api.call('listSandboxes', { query: { phase: 'Running', limit: MOST }, signal })
    ).items.map(({ sandboxId, poolName, claimedAt, paused }) => ({
      word: sandboxId,
      about: `of ${poolName}, claimed ${claimedAt ?? ''}${paused ? ', paused' : ''}`,
    })),
  pool: async (api, signal) =>
    (await api.call('listPools', { query: { limit: MOST }, signal })).items.map(
      ({ name, status }) => ({
        word: name,
        about: `${status.phase}, ${status.idleReplicas} idle`,
      }),
    ),
  env: async (api, signal) =>
    (await api.call('listEnvs', { query: { limit: MOST }, signal })).items.map(
      ({ name, status }) => ({
        word: name,
        about: `${status.memberCount} members, ${status.idleReplicas} idle`,
      }),
    ),
  member: async (api, signal, of) =>
    (await api.call('listMembers', { params: { name: of }, signal })).items.map(
      ({ name, status }) => ({
        word: name,
        about: `${status.phase}, ${status.idleReplicas} idle`,
      }),
    ),
  group: async (api, signal, of) =>
    (await api.call('listGroups', { params: { name: of }, signal })).items.map(
      ({ name, minReplicas, maxReplicas, scaleUpPolicy: { mode } }) => ({
        word: name,
        about: `${mode}, ${minReplicas} to ${maxReplicas}`,
      }),
    ),
  key: async (api, signal) =>
    (await api.call('listApiKeys', { query: { limit: MOST }, signal })).items.map(
      ({ keyId, name, role }) => ({
        word: keyId,
        about: `${name}, ${role}`,
      }),
    ),
  template: async (api, signal) =>
    (await api.call('listTemplates', { query: { limit: MOST }, signal })).items.map(
      ({ name, description = '' }) => ({ word: name, about: description }),
    ),
  'instance-type': async (api, signal) =>
    (await api.call('listInstanceTypes', { signal })).items.map(({ name, showName }) => ({
      word: name,
      about: showName,
    })),
  process: async (api, signal, of) =>
    (await api.call('listProcesses', { params: { sandboxId: of }, signal })).items
      .slice(0, MOST)
      .map(({ processId, status, command }) => ({
        word: processId,
        about: `${status}: ${command.join(' ')}`,
      })),
};

const connectionIn = (words: readonly string[]): ConnectionOptions => {
  const valueOf = (flag: string): string | undefined => {
    const at = words.lastIndexOf(flag);
    if (at >= 0) return words[at + 1] === '=' ? words[at + 2] : words[at + 1];
    return words.findLast((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1);
  };
  const [server, keyFile, dataDir] = [
    valueOf('--server'),
    valueOf('--key-file'),
    valueOf('--data-dir'),
  ];
  return { server, keyFile, dataDir, admin: words.includes('--admin') || undefined };
};
