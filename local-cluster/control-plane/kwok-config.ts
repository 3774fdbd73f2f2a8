/**
 * What kwok plays: nodes that are up, and pods that run. The label `test.sandpool.dev/stage` of a
 * pod, or an image of that name in its first container, chooses another fate; the annotation
 * `test.sandpool.dev/delay` (`250ms`, `3s`) says how long it takes.
 *
 * | stage | what happens to the pod |
 * | --- | --- |
 * | none | Running as soon as it has a node |
 * | `slow` | Running after 3 s |
 * | `stuck` | stays Pending |
 * | `unpullable`, `unpulled`, `unnamable` | Pending, its containers wait with ImagePullBackOff,
 *   ErrImagePull, InvalidImageName |
 * | `private` | the same as `unpullable` where the pod names no imagePullSecrets, else as none |
 * | `fails` | Failed, exit code 1, without ever running |
 * | `exits` | Running, then Succeeded, exit code 0 |
 * | `crashes` | Running, then Failed after 1 s: OOMKilled, exit code 137 |
 * | `vanishes` | Running, then gone after 1 s without a word |
 * | `late` | Running; once deleted, gone after 4 s, or after the delay |
 * | `lingers` | Running; once deleted, stays Terminating until the label goes |
 *
 * A node with this label at `unready` is NotReady until the label goes.
 */
export const STAGE_LABEL = 'test.sandpool.dev/stage';
export const DELAY_ANNOTATION = 'test.sandpool.dev/delay';
/** Only nodes with it are kwok's. */
export const NODE_ANNOTATION = { 'test.sandpool.dev/node': 'kwok' } as const;

export interface KwokSettings {
  /** As every node's kubelet. */
  readonly port: number;
  readonly certFile: string;
  readonly keyFile: string;
  /** For every container; in the CRI format. */
  readonly logFile: string;
  /** Commands of `exec` are real processes of this machine. */
  readonly workFolder: string;
  /** By port of Pods; values are ports of 127.0.0.1. */
  readonly forwards: ReadonlyMap<number, number>;
}

/** JSON is YAML too. */
export const kwokConfig = (settings: KwokSettings): string =>
  [options(settings), ...rules(settings), ...nodeStages(settings), ...podStages()]
    .map((document) => JSON.stringify(document))
    .join('\n---\n');

const options = ({ port, certFile, keyFile }: KwokSettings): object => ({
  apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
  kind: 'KwokConfiguration',
  metadata: { name: 'kwok' },
  options: {
    manageNodesWithAnnotationSelector: Object.entries(NODE_ANNOTATION)
      .map((pair) => pair.join('='))
      .join(','),
    nodeIP: '127.0.0.1',
    nodePort: port,
    // A probe of these addresses never leaves this machine.
    cidr: '127.128.0.0/9',
    serverAddress: `127.0.0.1:${port}`,
    tlsCertFile: certFile,
    tlsPrivateKeyFile: keyFile,
    enableDebuggingHandlers: true,
    podPlayStageParallelism: 16,
    nodePlayStageParallelism: 4,
    podsOnNodeSyncParallelism: 4,
  },
});

/** As images have it. */
const CONTAINER_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const rules = ({ logFile, workFolder, forwards }: KwokSettings): readonly object[] => {
  const rule = (kind: string, spec: object): object => ({
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind,
    metadata: { name: 'every-pod' },
    spec,
  });
  const nobody =
    process.getuid?.() === 0 ? { securityContext: { runAsUser: 65_534, runAsGroup: 65_534 } } : {};
  return [
    rule('ClusterExec', {
      execs: [
        {
          local: {
            workDir: workFolder,
            envs: [
              { name: 'HOME', value: workFolder },
              { name: 'PATH', value: CONTAINER_PATH },
            ],
            ...nobody,
          },
        },
      ],
    }),
    rule('ClusterAttach', { attaches: [{ logsFile: logFile }] }),
    rule('ClusterLogs', { logs: [{ logsFile: logFile, followLogs: true }] }),
    ...(forwards.size === 0
      ? []
      : [
          rule('ClusterPortForward', {
            forwards: [...forwards].map(([port, target]) => ({
              ports: [port],
              target: { address: '127.0.0.1', port: target },
            })),
          }),
        ]),
  ];
};

interface Stage {
  readonly name: string;
  readonly kind: 'Node' | 'Pod';
  readonly when: readonly object[];
  readonly next: object;
  readonly delayMs?: number;
}

const stage = ({ name, kind, when, next, delayMs }: Stage): object => ({
  apiVersion: 'kwok.x-k8s.io/v1alpha1',
  kind: 'Stage',
  metadata: { name },
  spec: {
    resourceRef: { apiGroup: 'v1', kind },
    selector: { matchExpressions: when },
    delay:
      delayMs === undefined
        ? undefined
        : {
            durationMilliseconds: delayMs,
            durationFrom: { expressionFrom: `.metadata.annotations["${DELAY_ANNOTATION}"]` },
          },
    next,
  },
});

const labelled = (operator: 'In' | 'NotIn', ...values: readonly string[]): object => ({
  key: `.metadata.labels["${STAGE_LABEL}"]`,
  operator,
  values,
});
const staged = (operator: 'In' | 'NotIn', ...values: readonly string[]): object => ({
  key: `.metadata.labels["${STAGE_LABEL}"] // .spec.containers[0].image`,
  operator,
  values,
});
const ready = (operator: 'In' | 'NotIn', value: string): object => ({
  key: '.status.conditions.[] | select( .type == "Ready" ) | .status',
  operator,
  values: [value],
});
const phase = (value: string): object => ({
  key: '.status.phase',
  operator: 'In',
  values: [value],
});
/** Without grace the API server removes a Pod itself; a kubelet looks before it deletes. */
const endsInTime = {
  key: '.metadata.deletionGracePeriodSeconds > 0',
  operator: 'In',
  values: ['true'],
};
const stays = { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' };

const nodeStages = ({ port }: KwokSettings): readonly object[] => {
  const room = '{ cpu: "1000", memory: 1Ti, pods: "100000" }';
  const status = (isReady: 'True' | 'False'): string => `
{{ $now := Now }}
conditions:
- { type: Ready, status: "${isReady}", reason: Kwok, message: "as the label says", lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }} }
addresses:
- { type: Hostname, address: localhost }
- { type: InternalIP, address: 127.0.0.1 }
daemonEndpoints: { kubeletEndpoint: { Port: ${port} } }
allocatable: ${room}
capacity: ${room}
phase: Running
`;
  return [
    stage({
      name: 'node-up',
      kind: 'Node',
      when: [labelled('NotIn', 'unready'), ready('NotIn', 'True')],
      next: { statusTemplate: status('True') },
    }),
    stage({
      name: 'node-unready',
      kind: 'Node',
      when: [labelled('In', 'unready'), ready('NotIn', 'False')],
      next: { statusTemplate: status('False') },
    }),
  ];
};

const IMAGE_TROUBLE: Readonly<Record<string, readonly [reason: string, message: string]>> = {
  unpullable: ['ImagePullBackOff', 'Back-off pulling image'],
  unpulled: ['ErrImagePull', 'not found'],
  unnamable: ['InvalidImageName', 'it can not be parsed'],
  private: ['ImagePullBackOff', 'Back-off pulling image'],
};
const withPassword = (operator: 'Exists' | 'DoesNotExist'): object => ({
  key: '.spec.imagePullSecrets',
  operator,
});

const podStages = (): readonly object[] => {
  const starting = [stays, phase('Pending')];
  const running = [stays, phase('Running')];
  const up = podStatus('Running', 'waiting: null, running: { startedAt: {{ $now | Quote }} }');
  const ended = (phase: 'Failed' | 'Succeeded', exitCode: number, reason: string): string =>
    podStatus(
      phase,
      `running: null, waiting: null, terminated: { exitCode: ${exitCode}, reason: ${reason}, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} }`,
    );
  const pod = (name: string, when: readonly object[], next: object, delayMs?: number): object =>
    stage({ name: `pod-${name}`, kind: 'Pod', when, next, delayMs });
  return [
    pod(
      'up',
      [...starting, staged('NotIn', 'slow', 'stuck', ...Object.keys(IMAGE_TROUBLE), 'fails')],
      { statusTemplate: up },
    ),
    pod('private-up', [...starting, staged('In', 'private'), withPassword('Exists')], {
      statusTemplate: up,
    }),
    pod('slow', [...starting, staged('In', 'slow')], { statusTemplate: up }, 3_000),
    ...Object.entries(IMAGE_TROUBLE).map(([name, [reason, message]]) =>
      pod(
        name,
        [
          ...starting,
          staged('In', name),
          ...(name === 'private' ? [withPassword('DoesNotExist')] : []),
          { key: '.status.containerStatuses', operator: 'DoesNotExist' },
        ],
        {
          statusTemplate: podStatus(
            'Pending',
            `waiting: { reason: ${reason}, message: "${message}" }`,
          ),
        },
      ),
    ),
    pod(
      'fails',
      [...starting, staged('In', 'fails')],
      { statusTemplate: ended('Failed', 1, 'Error') },
      0,
    ),
    pod(
      'exits',
      [...running, staged('In', 'exits')],
      { statusTemplate: ended('Succeeded', 0, 'Completed') },
      0,
    ),
    pod(
      'crashes',
      [...running, staged('In', 'crashes')],
      { statusTemplate: ended('Failed', 137, 'OOMKilled') },
      1_000,
    ),
    pod('vanishes', [...running, staged('In', 'vanishes')], { delete: true }, 1_000),
    pod('gone', [endsInTime, staged('NotIn', 'lingers', 'late')], { delete: true }),
    pod('late', [endsInTime, staged('In', 'late')], { delete: true }, 4_000),
  ];
};

/** One PATCH: phase, conditions, addresses and containers' statuses. */
const podStatus = (to: 'Pending' | 'Running' | 'Failed' | 'Succeeded', state: string): string => {
  const isUp = to === 'Running';
  const condition = (type: string, holds: boolean): string =>
    `- { type: ${type}, status: "${holds ? 'True' : 'False'}", lastTransitionTime: {{ $now | Quote }} }`;
  return `
{{ $now := Now }}
phase: ${to}
startTime: {{ or .status.startTime $now | Quote }}
conditions:
${condition('PodScheduled', true)}
${condition('Initialized', true)}
${condition('Ready', isUp)}
${condition('ContainersReady', isUp)}
{{ range .spec.readinessGates }}
- { type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }} }
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: {{ .image | Quote }}
  ready: ${isUp}
  started: ${isUp}
  restartCount: 0
  state: { ${state} }
{{ end }}
${isUp ? ADDRESSES : ''}
`;
};

/** Naming them again would change them. */
const ADDRESSES = `
hostIP: 127.0.0.1
hostIPs: [{ ip: 127.0.0.1 }]
{{ $ips := PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index $ips 0 | Quote }}
podIPs:
{{ range $ips }}
- ip: {{ . | Quote }}
{{ end }}
`;
