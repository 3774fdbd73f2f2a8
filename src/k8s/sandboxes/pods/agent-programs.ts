import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { arch } from 'node:process';
import { fileURLToPath } from 'node:url';
import { DefinitionRefused } from '../../../contracts/sandbox-driver.ts';
import type { InstanceDefinition } from '../../../model/templates/template.ts';

/** The agent (native/README.md), built for one kind of processors. */
export interface AgentProgram {
  /** Tells it from every other one: a part of its hash. */
  readonly id: string;
  readonly bytes: Buffer;
}

/** The agents that a daemon has, by processor as Kubernetes calls it. */
export interface Agents {
  /** That of the daemon itself. */
  readonly own: string;
  readonly programs: ReadonlyMap<string, AgentProgram>;
}

export interface PlacedAgent {
  readonly architecture: string;
  readonly program: AgentProgram;
}

/** The label that every node has, with the kind of its processors. */
export const ARCHITECTURE_LABEL = 'kubernetes.io/arch';

const NAMES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
/** Names the processors of this machine, as the labels of nodes do. */
export const OWN_ARCHITECTURE = NAMES[arch] ?? arch;
/** The limit of a ConfigMap. */
const MOST_BYTES = 1 << 20;
const ID_LENGTH = 16;

export const agentProgram = (bytes: Buffer): AgentProgram => ({
  id: createHash('sha256').update(bytes).digest('hex').slice(0, ID_LENGTH),
  bytes,
});

/**
 * Reads the agents of this installation: `launcher-ARCHITECTURE` of an image, else what
 * native/build has made on this machine. Throws where there is none, or one is too large.
 */
export const readAgents = (native = new URL('../../../../native/', import.meta.url)): Agents => {
  const built = fileURLToPath(new URL('build-output/launcher', native));
  const found = Object.values(NAMES).flatMap((name): [string, AgentProgram][] => {
    const file = fileURLToPath(new URL(`launcher-${name}`, native));
    const path = [file, ...(name === OWN_ARCHITECTURE ? [built] : [])].find((each) =>
      existsSync(each),
    );
    return path === undefined ? [] : [[name, agentProgram(readFileSync(path))]];
  });
  if (found.length === 0) throw new Error(`the agent of Pods is missing: ${built}`);
  for (const [name, { bytes }] of found)
    if (bytes.length > MOST_BYTES)
      throw new Error(`the agent of Pods for ${name} has more than ${MOST_BYTES} bytes`);
  return { own: OWN_ARCHITECTURE, programs: new Map(found) };
};

/**
 * Says which agent the Pod of a definition gets: that for the processors that its template names
 * by the node selector, else for those of the daemon. Throws DefinitionRefused where there is none.
 */
export const agentFor = ({ placement }: InstanceDefinition, agents: Agents): PlacedAgent => {
  const architecture = placement?.nodeSelector?.[ARCHITECTURE_LABEL] ?? agents.own;
  const program = agents.programs.get(architecture);
  if (program) return { architecture, program };
  const known = [...agents.programs.keys()].join(' or ');
  throw new DefinitionRefused(
    `spec.nodeSelector: this installation of Sandpool has no agent for the processors that ` +
      `"${ARCHITECTURE_LABEL}" names; it may be ${known}`,
  );
};
