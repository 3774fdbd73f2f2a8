import type { AgentProgram } from './agent-programs.ts';

/** Reserved in a Pod's containers. */
export const AGENT_FOLDER = '/.sandpool';
const FILE = 'launcher';
export const AGENT = `${AGENT_FOLDER}/${FILE}`;

export const AGENT_LABEL = 'sandpool.dev/agent';

const NAME = 'sandpool-agent';
const MODE = 0o555;

export const agentMount = { name: NAME, mountPath: AGENT_FOLDER, readOnly: true } as const;

export const agentVolume = ({ id }: Pick<AgentProgram, 'id'>): object => ({
  name: NAME,
  configMap: { name: mapNameOf(id), defaultMode: MODE },
});

/** The name determines the bytes, which never change. */
export const agentMap = ({ id, bytes }: AgentProgram, namespace: string): object => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { name: mapNameOf(id), namespace, labels: { [AGENT_LABEL]: id } },
  immutable: true,
  binaryData: { [FILE]: bytes.toString('base64') },
});

export const isAgentMap = (found: object, { bytes }: AgentProgram): boolean => {
  const { immutable, binaryData = {} } = found as {
    readonly immutable?: boolean;
    readonly binaryData?: Readonly<Record<string, string>>;
  };
  return immutable === true && binaryData[FILE] === bytes.toString('base64');
};

export const mapNameOf = (id: string): string => `${NAME}-${id}`;
