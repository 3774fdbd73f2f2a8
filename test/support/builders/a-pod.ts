import type { AgentProgram } from '../../../src/k8s/sandboxes/pods/agent-programs.ts';
import { agentMount, agentVolume } from '../../../src/k8s/sandboxes/pods/pod-agent.ts';
import { DELAY_ANNOTATION, STAGE_LABEL } from '../../../local-cluster/control-plane/kwok-config.ts';

export interface PodProgram {
  readonly image: string;
  readonly command: readonly string[];
  /** An empty, writable folder instead of the image's. */
  readonly writable?: string;
}

export interface APod {
  readonly name: string;
  readonly namespace: string;
  /** kwok's stage, see kwok-config.ts; by default the Pod runs. */
  readonly stage?: string;
  /** `250ms`, `3s`: for slow stages. */
  readonly delay?: string;
  readonly program?: PodProgram;
  /** Simulated Pods have it anyway. */
  readonly agent?: AgentProgram;
}

/** Conforms to the restricted pod security standard. */
export const aPod = ({
  name,
  namespace,
  stage,
  delay,
  agent,
  program: { writable, ...program } = { image: 'registry.k8s.io/pause:3.10', command: [] },
}: APod): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace,
    labels: stage === undefined ? {} : { [STAGE_LABEL]: stage },
    annotations: delay === undefined ? {} : { [DELAY_ANNOTATION]: delay },
  },
  spec: {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 0,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 1_000,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    volumes: [
      ...(agent ? [agentVolume(agent)] : []),
      ...(writable === undefined ? [] : [{ name: 'writable', emptyDir: {} }]),
    ],
    containers: [
      {
        name: 'main',
        ...program,
        volumeMounts: [
          ...(agent ? [agentMount] : []),
          ...(writable === undefined ? [] : [{ name: 'writable', mountPath: writable }]),
        ],
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
});
