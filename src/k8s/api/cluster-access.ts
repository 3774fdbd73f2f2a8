import type { KubeConfig } from '@kubernetes/client-node';
import { readFile } from 'node:fs/promises';
import type { Log } from '../../contracts/log.ts';

export interface ClusterTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

export interface ClusterAccess {
  readonly server: URL;
  readonly tls: ClusterTls;
  /** Refreshed in the background once it is a minute old. */
  authorization(): string | undefined;
  /** A rejected header is read again early. */
  rejected(): void;
  /** Used by the library itself: exec, attach. */
  readonly kubeConfig: KubeConfig;
}

/** Without a kubeconfig file, the Pod's service account. */
export interface AccessSource {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/**
 * Loads the client library on demand, since its import takes 0.7 s and 60 MB. Reads certificates
 * once, and tokens repeatedly, since they expire. Throws if the access is unusable.
 */
export const readClusterAccess = async (source: AccessSource, log: Log): Promise<ClusterAccess> => {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const kubeConfig = new KubeConfig();
  if (source.kubeconfig === undefined) kubeConfig.loadFromCluster();
  else kubeConfig.loadFromFile(source.kubeconfig);
  if (source.context !== undefined) kubeConfig.setCurrentContext(source.context);
  const cluster = kubeConfig.getCurrentCluster();
  if (!cluster)
    throw new Error(
      `no cluster in ${source.kubeconfig ?? 'the service account'} for the context ` +
        `${kubeConfig.getCurrentContext() || '(none)'}`,
    );
  if (cluster.proxyUrl !== undefined)
    throw new Error('a proxy-url in the kubeconfig is not supported');
  if (!URL.canParse(cluster.server))
    throw new Error(`the API server's address is not a URL: ${cluster.server}`);
  const read = authorizationReader(kubeConfig);
  const { tls, authorization } = await read();
  return {
    server: new URL(cluster.server),
    tls: { ...tls, rejectUnauthorized: !cluster.skipTLSVerify },
    kubeConfig,
    ...keptFresh(authorization, read, log),
  };
};

const FRESH_MS = 60_000;

interface Credentials {
  readonly tls: Omit<ClusterTls, 'rejectUnauthorized'>;
  readonly authorization: string | undefined;
}

/**
 * The library may run a credential plugin. Reads token files itself, since the library caches them
 * for a minute.
 */
const authorizationReader = (kubeConfig: KubeConfig) => async (): Promise<Credentials> => {
  const options: {
    headers?: Record<string, unknown>;
    auth?: string | null;
    ca?: unknown;
    cert?: unknown;
    key?: unknown;
    servername?: unknown;
  } = {};
  await kubeConfig.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  const { ca, cert, key, servername } = options;
  const header = options.headers?.['Authorization'];
  return {
    tls: {
      ...(isPem(ca) ? { ca } : {}),
      ...(isPem(cert) ? { cert } : {}),
      ...(isPem(key) ? { key } : {}),
      ...(typeof servername === 'string' ? { servername } : {}),
    },
    authorization:
      (await fileToken(kubeConfig)) ??
      (typeof header === 'string'
        ? header
        : options.auth
          ? `Basic ${Buffer.from(options.auth).toString('base64')}`
          : undefined),
  };
};

const isPem = (value: unknown): value is string | Buffer =>
  typeof value === 'string' || Buffer.isBuffer(value);

const fileToken = async (kubeConfig: KubeConfig): Promise<string | undefined> => {
  const provider = kubeConfig.getCurrentUser()?.authProvider as
    | { readonly config?: { readonly tokenFile?: unknown } }
    | undefined;
  const file = provider?.config?.tokenFile;
  return typeof file === 'string' ? `Bearer ${(await readFile(file, 'utf8')).trim()}` : undefined;
};

const keptFresh = (
  first: string | undefined,
  read: () => Promise<Credentials>,
  log: Log,
): Pick<ClusterAccess, 'authorization' | 'rejected'> => {
  let current = first;
  let readAt = performance.now();
  const readAgain = (): void => {
    readAt = performance.now(); // also after a failure: one attempt a minute
    read().then(
      ({ authorization }) => {
        current = authorization;
      },
      (error: unknown) => {
        log.error({ error }, 'api-server-credentials-not-read');
      },
    );
  };
  return {
    authorization: () => {
      if (performance.now() - readAt > FRESH_MS) readAgain();
      return current;
    },
    rejected: () => {
      if (performance.now() - readAt > REJECTED_MS) readAgain();
    },
  };
};

/** Holds even after rejections. */
const REJECTED_MS = 1_000;
