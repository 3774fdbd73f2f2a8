import type { PullSecretOwner, PullSecrets } from '../../contracts/pull-secrets.ts';
import type { RegistryCredentials } from '../../model/pools/pool-source.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { asRefusal, isAbsent, isRefused } from '../api/api-errors.ts';
import { ENV_LABEL } from './env-resource.ts';
import { API_VERSION, objectPath, type ResourceObject } from '../api/resource.ts';
import { POOL_LABEL } from '../sandboxes/sandbox-resource.ts';

export const pullSecretNameOf = (ownerUid: string): string => `sandpool-pull-${ownerUid}`;

/**
 * Registry passwords as Secrets beside the Pods, owned by the pool's or env's object once it
 * exists. Sandpool never reads them.
 */
export class PodPullSecrets implements PullSecrets {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  async keep(owner: PullSecretOwner, registries: readonly RegistryCredentials[]): Promise<void> {
    try {
      const secret = secretOf(owner, registries, await this.#uidOf(owner));
      await this.#api.create(secretsPath(owner.namespace), secret).catch(async (error: unknown) => {
        if (!isRefused(error, 409)) throw error;
        await this.#api.replace(secretPath(owner), secret);
      });
    } catch (error) {
      throw asRefusal(error);
    }
  }

  async forget(owner: Pick<PullSecretOwner, 'namespace' | 'uid'>): Promise<void> {
    try {
      await this.#api.remove(secretPath(owner));
    } catch (error) {
      if (!isAbsent(error)) throw asRefusal(error);
    }
  }

  async #uidOf({ kind, namespace, name, uid }: PullSecretOwner): Promise<string | undefined> {
    try {
      const { metadata } = (await this.#api.get(
        objectPath(OWNERS[kind].plural, { namespace, name }),
      )) as ResourceObject;
      return metadata.labels?.[OWNERS[kind].label] === uid || metadata.uid === uid
        ? metadata.uid
        : undefined;
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }
}

const OWNERS = {
  pool: { kind: 'SandboxPool', plural: 'sandboxpools', label: POOL_LABEL },
  env: { kind: 'SandboxEnv', plural: 'sandboxenvs', label: ENV_LABEL },
} as const;

const secretsPath = (namespace: string): string =>
  `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
const secretPath = ({ namespace, uid }: Pick<PullSecretOwner, 'namespace' | 'uid'>): string =>
  `${secretsPath(namespace)}/${pullSecretNameOf(uid)}`;

const secretOf = (
  { kind, namespace, name, uid }: PullSecretOwner,
  registries: readonly RegistryCredentials[],
  ownerUid: string | undefined,
): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: pullSecretNameOf(uid),
    namespace,
    labels: { [OWNERS[kind].label]: uid },
    ownerReferences:
      ownerUid === undefined
        ? undefined
        : [
            {
              apiVersion: API_VERSION,
              kind: OWNERS[kind].kind,
              name,
              uid: ownerUid,
              controller: false,
              blockOwnerDeletion: false,
            },
          ],
  },
  type: 'kubernetes.io/dockerconfigjson',
  data: {
    '.dockerconfigjson': Buffer.from(
      JSON.stringify({ auths: Object.fromEntries(registries.map(authOf)) }),
    ).toString('base64'),
  },
});

const authOf = ({ registry, username, password }: RegistryCredentials): [string, object] => [
  registry,
  { username, password, auth: Buffer.from(`${username}:${password}`).toString('base64') },
];
