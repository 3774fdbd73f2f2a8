import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DefinitionRefused } from '../../../contracts/sandbox-driver.ts';
import { ownArchitecture } from '../../../lib/own-architecture.ts';
import type { InstanceDefinition } from '../../../model/templates/template.ts';

/** The agent (native/README.md) for one architecture. */
export interface AgentProgram {
  readonly id: string;
  readonly bytes: Buffer;
}

/** By architecture, in Kubernetes' spelling. */
export interface Agents {
  readonly own: string;
  readonly programs: ReadonlyMap<string, AgentProgram>;
}

export interface PlacedAgent {
  readonly architecture: string;
  readonly program: AgentProgram;
}

export const ARCHITECTURE_LABEL = 'kubernetes.io/arch';

const ARCHITECTURES = ['amd64', 'arm64'] as const;
/** Size limit of a ConfigMap. */
const MOST_BYTES = 1 << 20;
const ID_LENGTH = 16;

export const agentProgram = (bytes: Buffer): AgentProgram => ({
  id: createHash('sha256').update(bytes).digest('hex').slice(0, ID_LENGTH),
  bytes,
});

/**
 * Reads `launcher-ARCHITECTURE` of an image, or the output of native/build. Throws if none is
 * found, or one is too large.
 */
export const readAgents = (native = new URL('../../../../native/', import.meta.url)): Agents => {
  const own = ownArchitecture();
  const built = fileURLToPath(new URL('build-output/launcher', native));
  const found = ARCHITECTURES.flatMap((name): [string, AgentProgram][] => {
    const file = fileURLToPath(new URL(`launcher-${name}`, native));
    const path = [file, ...(name === own ? [built] : [])].find((each) => existsSync(each));
    return path === undefined ? [] : [[name, agentProgram(readFileSync(path))]];
  });
  if (found.length === 0) throw new Error(`the agent of Pods is missing: ${built}`);
  for (const [name, { bytes }] of found)
    if (bytes.length > MOST_BYTES)
      throw new Error(`the Pod agent for ${name} has more than ${MOST_BYTES} bytes`);
  return { own, programs: new Map(found) };
};

/**
 * Throws DefinitionRefused if no agent is built for the template's node selector, or by default for
 * the daemon's architecture.
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
