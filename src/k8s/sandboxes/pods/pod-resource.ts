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
 * Every Pod has it: by it the chart's NetworkPolicy closes sandboxes to and from the network. No
 * definition decides it.
 */
const CLOSED_NETWORK = { 'sandpool.dev/network': 'none' } as const;

export interface PodSettings {
  /** The user that everything in a sandbox runs as. */
  readonly runAsUser: number;
  /** Seconds between the polite and the hard end. */
  readonly terminationGraceSeconds: number;
  /** As many where it is not this daemon that ends the Pod; absent: the same. */
  readonly evictionGraceSeconds?: number;
  /** Whether autoscalers of nodes are asked to leave the Pods where they are. */
  readonly protected?: boolean;
  /** Labels of every Pod, beside those that the daemon needs. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Unless the template names one. */
  readonly runtimeClassName?: string;
  /** Takes the place of docker.io, if an image is pulled without a password. */
  readonly registry?: string;
  readonly agents: Agents;
}

/**
 * Asks the cluster autoscaler and Karpenter not to remove the node for its own sake. Pods have it
 * from birth: a claim writes its record and no Pod.
 */
const PROTECTED = {
  'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
  'karpenter.sh/do-not-disrupt': 'true',
} as const;

/** Before the name of a container whose probe is an endpoint's. */
const ENDPOINT_PROBE = 'probe.sandpool.dev/';

/** The endpoint that the container's probe belongs to; undefined where it is its own. */
export const endpointProbeOf = (
  annotations: Readonly<Record<string, string>> | undefined,
  container: string,
): string | undefined => annotations?.[`${ENDPOINT_PROBE}${container}`];

/**
 * The Pod of an instance, owned by its record so that it never outlives it. Restricted Pod
 * Security, no service account. It mounts the ConfigMap of its agent. Throws as `agentFor`.
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
      // The pause container is pid 1 then: it reaps orphans, and a main process without handlers
      // heeds SIGTERM. Several containers stay apart.
      ...(definition.containers.length === 1 ? { shareProcessNamespace: true } : {}),
      securityContext: securityContextOf(settings),
      ...pullSecretsOf(definition, record.poolUid),
      containers: definition.containers.map((container) => ({
        ...containerOf(container, byContainer.get(container.name)?.probe, volumeMounts),
        // What is on the node may be there by another tenant's password.
        ...(definition.imagePullSecret
          ? { imagePullPolicy: 'Always' }
          : { image: pulledAs(container.image, settings.registry) }),
      })),
      volumes: [...volumesOf(mounts), agentVolume(agent.program)],
    },
  };
};

/** Names the endpoints whose probes containers have. */
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

/** An image without a registry is one of docker.io, and one without a folder of its `library`. */
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

/** One for each claim, however often it is mounted. */
const volumesOf = (mounts: readonly VolumeMount[]): readonly object[] =>
  [...new Set(mounts.map(({ claimName }) => claimName))].map((claimName) => ({
    name: volumeNameOf(mounts, claimName),
    persistentVolumeClaim: { claimName },
  }));

/** A claim's name may be longer than that of a volume. */
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

/** As the mirror keeps a Pod: 0.3 KB instead of 4.9. */
export interface StoredPod {
  readonly namespace: string;
  /** The id of its instance, after which it is named. */
  readonly id: InstanceId;
  readonly uid: string;
  /** The uid of the record that owns it; undefined: it is nobody's that we know. */
  readonly ownerUid: string | undefined;
  readonly revision: string;
  readonly nodeName: string | undefined;
  /** Their names in the order of the template; absent where there is one. */
  readonly containers?: readonly string[];
  /** It lacks the label by which Pods are watched: somebody took it off. */
  readonly isUnlabelled?: true;
  /** It was told to end, by this time in ms since the epoch. */
  readonly endsBy: number | undefined;
  /** Ended without grace: only somebody's finalizer keeps the object. */
  readonly isForced: boolean;
  /** Why the cluster itself ends it, or ended it: it is evicted, preempted, or its node is gone. */
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

/** Undefined for one that can't be an instance's. */
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
