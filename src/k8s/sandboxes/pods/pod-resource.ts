import type { LaunchOrder, Vitals } from '../../../model/sandbox.ts';
import type { ReadinessProbe } from '../../../model/templates/readiness-probe.ts';
import type {
  ContainerDefinition,
  InstanceDefinition,
  VolumeMount,
} from '../../../model/templates/template.ts';
import { idOfPodName, podNameOf, type InstanceId } from '../../../model/identifiers.ts';
import { disruptionOf, type PodStatus, vitalsOf } from './pod-vitals.ts';
import { annotationsOfPool, labelsOfPool } from './metadata-of-pool.ts';
import { agentFor, ARCHITECTURE_LABEL, type Agents } from './agent-programs.ts';
import { AGENT_LABEL, agentMount, agentVolume } from './pod-agent.ts';
import { placedProbes } from './probe-places.ts';
import { pullSecretNameOf } from '../../records/pull-secrets.ts';
import { POOL_LABEL } from '../sandbox-resource.ts';

export const podsPath = (namespace?: string): string =>
  `/api/v1${namespace === undefined ? '' : `/namespaces/${namespace}`}/pods`;

export const podPath = (namespace: string, name: string): string =>
  `${podsPath(namespace)}/${name}`;

/**
 * The chart's NetworkPolicy selects this label to isolate sandboxes. Definitions cannot change it.
 */
const CLOSED_NETWORK = { 'sandpool.dev/network': 'none' } as const;

export interface PodSettings {
  readonly runAsUser: number;
  readonly terminationGraceSeconds: number;
  readonly evictionGraceSeconds?: number;
  /** Asks node autoscalers not to move the Pods. */
  readonly protected?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly runtimeClassName?: string;
  /** Replaces docker.io for images that are pulled without a password. */
  readonly registry?: string;
  readonly agents: Agents;
}

/**
 * Asks the cluster autoscaler and Karpenter to keep the node. Set from creation, since a claim
 * changes only the record.
 */
const PROTECTED = {
  'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
  'karpenter.sh/do-not-disrupt': 'true',
} as const;

const ENDPOINT_PROBE = 'probe.sandpool.dev/';

export const endpointProbeOf = (
  annotations: Readonly<Record<string, string>> | undefined,
  container: string,
): string | undefined => annotations?.[`${ENDPOINT_PROBE}${container}`];

/**
 * The instance's record owns the Pod, which never outlives it. It satisfies the restricted Pod
 * Security Standard, has no service account, and mounts its agent's ConfigMap. Throws as
 * `agentFor`.
 */
export const podOf = (
  { record, definition, labels = {}, annotations: given = {} }: LaunchOrder,
  ownerUid: string,
  settings: PodSettings,
): object => {
  const { byContainer } = placedProbes(definition);
  const mounts = definition.volumes ?? [];
  const { podLabels, podAnnotations, ...placement } = definition.placement ?? {};
  const agent = agentFor(definition, settings.agents);
  const volumeMounts = [...mountsOf(mounts), agentMount];
  const annotations = {
    ...podAnnotations,
    ...annotationsOfPool(given),
    ...(settings.protected ? PROTECTED : {}),
    ...annotationsOfProbes(byContainer),
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podNameOf(record.id),
      namespace: record.poolOwner.namespace,
      labels: {
        ...settings.labels,
        ...podLabels,
        ...labelsOfPool(labels),
        [POOL_LABEL]: record.poolUid,
        [AGENT_LABEL]: agent.program.id,
        ...CLOSED_NETWORK,
      },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      ownerReferences: [ownerReference(record, ownerUid)],
    },
    spec: {
      ...(settings.runtimeClassName === undefined
        ? {}
        : { runtimeClassName: settings.runtimeClassName }),
      ...placement,
      nodeSelector: { ...placement.nodeSelector, [ARCHITECTURE_LABEL]: agent.architecture },
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds:
        settings.evictionGraceSeconds ?? settings.terminationGraceSeconds,
      // Makes the pause container pid 1: it reaps orphans, and a main process without handlers
      // obeys SIGTERM. Several containers stay isolated from each other.
      ...(definition.containers.length === 1 ? { shareProcessNamespace: true } : {}),
      securityContext: securityContextOf(settings),
      ...pullSecretsOf(definition, record.poolUid),
      containers: definition.containers.map((container) => ({
        ...containerOf(container, byContainer.get(container.name)?.probe, volumeMounts),
        // A cached image may have been pulled with another tenant's password.
        ...(definition.imagePullSecret
          ? { imagePullPolicy: 'Always' }
          : { image: pulledAs(container.image, settings.registry) }),
      })),
      volumes: [...volumesOf(mounts), agentVolume(agent.program)],
    },
  };
};

const annotationsOfProbes = (
  byContainer: ReturnType<typeof placedProbes>['byContainer'],
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...byContainer].flatMap(([container, { endpoint }]) =>
      endpoint === undefined ? [] : [[`${ENDPOINT_PROBE}${container}`, endpoint] as const],
    ),
  );

const ownerReference = ({ id }: LaunchOrder['record'], uid: string): object => ({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'Sandbox',
  name: podNameOf(id),
  uid,
  controller: true,
  blockOwnerDeletion: false,
});

const securityContextOf = ({ runAsUser }: PodSettings): object => ({
  runAsNonRoot: true,
  runAsUser,
  runAsGroup: runAsUser,
  seccompProfile: { type: 'RuntimeDefault' },
});

const pullSecretsOf = (
  { imagePullSecret: given }: InstanceDefinition,
  poolUid: string,
): { readonly imagePullSecrets?: readonly { readonly name: string }[] } =>
  given ? { imagePullSecrets: [{ name: pullSecretNameOf(given === true ? poolUid : given) }] } : {};

const DOCKER_HUB: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io']);

/** An image without a registry is on docker.io; without a folder, it is in `library`. */
const pulledAs = (image: string, registry: string | undefined): string => {
  const [first = '', ...rest] = image.split('/');
  const namesRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (registry === undefined || (namesRegistry && !DOCKER_HUB.has(first))) return image;
  const path = namesRegistry ? rest : [first, ...rest];
  return [registry, ...(path.length === 1 ? ['library'] : []), ...path].join('/');
};

const containerOf = (
  container: ContainerDefinition,
  probe: ReadinessProbe | undefined,
  volumeMounts: readonly object[],
): object => ({
  name: container.name,
  image: container.image,
  command: container.given?.command,
  args: container.given?.args,
  workingDir: container.given?.workingDir,
  env: Object.entries(container.env).map(([name, value]) => ({ name, value })),
  ports: Object.entries(container.ports).map(([name, containerPort]) => ({ name, containerPort })),
  resources: resourcesOf(container),
  readinessProbe: probe && probeOf(probe),
  volumeMounts,
  securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
});

const resourcesOf = (container: ContainerDefinition): object => {
  const { extendedResources = {}, ephemeralStorageBytes } = container;
  const devices = Object.entries(extendedResources);
  const alike = {
    ...Object.fromEntries(devices.map(([name, amount]) => [name, String(amount)])),
    ...(ephemeralStorageBytes === undefined
      ? {}
      : { 'ephemeral-storage': String(ephemeralStorageBytes) }),
  };
  return {
    requests: { ...amountsOf(container.requests ?? container), ...alike },
    limits: { ...amountsOf(container), ...alike },
  };
};

const amountsOf = ({
  cpuCores,
  memoryBytes,
}: {
  readonly cpuCores: number;
  readonly memoryBytes: number;
}): object => ({ cpu: `${Math.ceil(cpuCores * 1_000)}m`, memory: String(memoryBytes) });

const mountsOf = (mounts: readonly VolumeMount[]): readonly object[] =>
  mounts.map(({ claimName, mountPath, subPath, readOnly }) => ({
    name: volumeNameOf(mounts, claimName),
    mountPath,
    subPath,
    readOnly,
  }));

/** One volume per claim, even if it is mounted several times. */
const volumesOf = (mounts: readonly VolumeMount[]): readonly object[] =>
  [...new Set(mounts.map(({ claimName }) => claimName))].map((claimName) => ({
    name: volumeNameOf(mounts, claimName),
    persistentVolumeClaim: { claimName },
  }));

/** The claim's name may be too long for a volume. */
const volumeNameOf = (mounts: readonly VolumeMount[], claimName: string): string =>
  `claim-${mounts.findIndex((mount) => mount.claimName === claimName)}`;

const probeOf = ({
  action,
  initialDelayMs,
  periodMs,
  timeoutMs,
  successThreshold,
  failureThreshold,
}: ReadinessProbe): object => {
  const seconds = (ms: number): number => Math.ceil(ms / 1_000);
  return {
    exec: action.kind === 'exec' ? { command: action.argv } : undefined,
    httpGet:
      action.kind === 'http'
        ? {
            port: action.port,
            path: action.path,
            scheme: action.secure ? 'HTTPS' : 'HTTP',
            httpHeaders: action.headers.map(([name, value]) => ({ name, value })),
          }
        : undefined,
    tcpSocket: action.kind === 'tcp' ? { port: action.port } : undefined,
    initialDelaySeconds: seconds(initialDelayMs),
    periodSeconds: seconds(periodMs),
    timeoutSeconds: seconds(timeoutMs),
    successThreshold,
    failureThreshold,
  };
};

/** 0.3 KB instead of 4.9. */
export interface StoredPod {
  readonly namespace: string;
  readonly id: InstanceId;
  readonly uid: string;
  readonly ownerUid: string | undefined;
  readonly revision: string;
  readonly nodeName: string | undefined;
  /** In the template's order; absent for a single container. */
  readonly containers?: readonly string[];
  readonly isUnlabelled?: true;
  /** Deadline of its deletion in ms since the epoch. */
  readonly endsBy: number | undefined;
  /** Deleted without grace; only a finalizer keeps the object. */
  readonly isForced: boolean;
  /** Eviction, preemption, or a lost node. */
  readonly disruption: string | undefined;
  readonly vitals: Vitals;
}

interface PodObject {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
    readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[];
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly {
      readonly name: string;
      readonly readinessProbe?: { readonly httpGet?: object; readonly tcpSocket?: object };
    }[];
  };
  readonly status?: PodStatus;
}

/** Undefined for a Pod that is not an instance's. */
export const storedPodOf = (object: unknown): StoredPod | undefined => {
  const { metadata, spec, status } = object as PodObject;
  const id = idOfPodName(metadata.name);
  if (id === undefined) return undefined;
  const endsBy =
    metadata.deletionTimestamp === undefined ? undefined : Date.parse(metadata.deletionTimestamp);
  const containers = spec?.containers?.map(({ name }) => name) ?? [];
  return {
    namespace: metadata.namespace,
    id,
    uid: metadata.uid,
    revision: metadata.resourceVersion,
    nodeName: spec?.nodeName,
    ownerUid: metadata.ownerReferences?.find(({ kind }) => kind === 'Sandbox')?.uid,
    isUnlabelled: metadata.labels?.[POOL_LABEL] === undefined ? true : undefined,
    containers: containers.length > 1 ? containers : undefined,
    endsBy,
    isForced: metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0,
    disruption: disruptionOf(status, spec?.nodeName),
    vitals: vitalsOf(status, { containers, endsBy, isAsked: isAsked(spec), node: spec?.nodeName }),
  };
};

const isAsked = (spec: PodObject['spec']): boolean =>
  spec?.containers?.some(
    ({ readinessProbe }) =>
      readinessProbe?.httpGet !== undefined || readinessProbe?.tcpSocket !== undefined,
  ) ?? false;
