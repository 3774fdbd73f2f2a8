/** The folder of the agent in the containers of a Pod: nothing else can be mounted there. */
export const AGENT_FOLDER = '/.sandpool';
/** Where the agent stands in the containers of a Pod (native/README.md). */
export const AGENT = `${AGENT_FOLDER}/launcher`;

/** Where it stands in Sandpool's own image, which deploy/Dockerfile makes. */
const AGENT_IN_IMAGE = '/opt/sandpool/native/launcher';
/** Names the init container: no container of a template can have it. */
export const AGENT_CONTAINER = 'sandpool-agent';

/** The mount by which a container has the agent. */
export const agentMount = {
  name: AGENT_CONTAINER,
  mountPath: AGENT_FOLDER,
  readOnly: true,
} as const;

/** The volume that the agent is put into. */
export const agentVolume = { name: AGENT_CONTAINER, emptyDir: {} } as const;

/** Tells the cluster autoscaler that nothing of the volume must be kept. */
export const agentAnnotations = {
  'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes': AGENT_CONTAINER,
} as const;

/**
 * Puts the agent into its volume. `resources` are those of the first container, so that the Pod as
 * a whole takes no more, and keeps its class of service.
 */
export const agentContainer = (image: string, resources: object): object => ({
  name: AGENT_CONTAINER,
  image,
  command: [AGENT_IN_IMAGE, 'install', AGENT_FOLDER],
  resources,
  volumeMounts: [{ ...agentMount, readOnly: false }],
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
});
