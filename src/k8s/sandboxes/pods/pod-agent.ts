import type { AgentProgram } from './agent-programs.ts';

/** The folder of the agent in the containers of a Pod: nothing else can be mounted there. */
export const AGENT_FOLDER = '/.sandpool';
const FILE = 'launcher';
/** Where the agent stands in the containers of a Pod (native/README.md). */
export const AGENT = `${AGENT_FOLDER}/${FILE}`;

/** On ConfigMaps with an agent, and on the Pods that mount one: the id of the agent. */
export const AGENT_LABEL = 'sandpool.dev/agent';

const NAME = 'sandpool-agent';
/** Everybody may read and run it. */
const MODE = 0o555;

/** The mount by which a container has the agent. */
export const agentMount = { name: NAME, mountPath: AGENT_FOLDER, readOnly: true } as const;

/** The volume that has the agent: its ConfigMap in the Pod's own namespace. */
export const agentVolume = ({ id }: Pick<AgentProgram, 'id'>): object => ({
  name: NAME,
  configMap: { name: mapNameOf(id), defaultMode: MODE },
});

/** The ConfigMap of an agent. What has its name has its bytes: none is ever changed. */
export const agentMap = ({ id, bytes }: AgentProgram, namespace: string): object => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { name: mapNameOf(id), namespace, labels: { [AGENT_LABEL]: id } },
  immutable: true,
  binaryData: { [FILE]: bytes.toString('base64') },
});

/** Says whether what the API server has is what `agentMap` describes. */
export const isAgentMap = (found: object, { bytes }: AgentProgram): boolean => {
  const { immutable, binaryData = {} } = found as {
    readonly immutable?: boolean;
    readonly binaryData?: Readonly<Record<string, string>>;
  };
  return immutable === true && binaryData[FILE] === bytes.toString('base64');
};

/** The name of an agent's ConfigMap. */
export const mapNameOf = (id: string): string => `${NAME}-${id}`;
