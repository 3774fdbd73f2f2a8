import type { AgentProgram } from './agent-programs.ts';

/** Folder of the agent in a Pod's containers; reserved for it. */
export const AGENT_FOLDER = '/.sandpool';
const FILE = 'launcher';
/** Path of the agent in a Pod's containers (native/README.md). */
export const AGENT = `${AGENT_FOLDER}/${FILE}`;

/** Label of an agent's ConfigMaps and of the Pods that mount it; the value is the agent's id. */
export const AGENT_LABEL = 'sandpool.dev/agent';

const NAME = 'sandpool-agent';
const MODE = 0o555;

/** The mount of the agent in a container. */
export const agentMount = { name: NAME, mountPath: AGENT_FOLDER, readOnly: true } as const;

/** Returns the volume of the agent: the ConfigMap in the Pod's namespace. */
export const agentVolume = ({ id }: Pick<AgentProgram, 'id'>): object => ({
  name: NAME,
  configMap: { name: mapNameOf(id), defaultMode: MODE },
});

/** Returns the ConfigMap of an agent. The name determines the bytes, which never change. */
export const agentMap = ({ id, bytes }: AgentProgram, namespace: string): object => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { name: mapNameOf(id), namespace, labels: { [AGENT_LABEL]: id } },
  immutable: true,
  binaryData: { [FILE]: bytes.toString('base64') },
});

/** Returns whether an existing ConfigMap matches `agentMap`. */
export const isAgentMap = (found: object, { bytes }: AgentProgram): boolean => {
  const { immutable, binaryData = {} } = found as {
    readonly immutable?: boolean;
    readonly binaryData?: Readonly<Record<string, string>>;
  };
  return immutable === true && binaryData[FILE] === bytes.toString('base64');
};

export const mapNameOf = (id: string): string => `${NAME}-${id}`;
