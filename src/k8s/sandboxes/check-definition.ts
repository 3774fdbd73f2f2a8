import { posix } from 'node:path';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import { imageFaultOf } from './image-reference.ts';
import { agentFor, type Agents } from './pods/agent-programs.ts';
import { AGENT_FOLDER } from './pods/pod-agent.ts';
import { placedProbes } from './pods/probe-places.ts';

export const checkDefinition = (definition: InstanceDefinition, agents: Agents): void => {
  agentFor(definition, agents);
  definition.containers.forEach(({ image }, index) => {
    const fault =
      image === 'host' || /^(?:dir|oci):/.test(image)
        ? `must be the name of a container image; "${image.slice(0, 80)}" is only for the ` +
          'embedded daemon'
        : imageFaultOf(image);
    if (fault !== undefined)
      throw new DefinitionRefused(`spec.containers[${index}].image: ${fault}`);
  });
  definition.volumes?.forEach(({ mountPath }, index) => {
    if (posix.normalize(`${mountPath}/`).startsWith(`${AGENT_FOLDER}/`))
      throw new DefinitionRefused(
        `overrides.volumes[${index}].mountPath: nothing can be mounted at ${AGENT_FOLDER}`,
      );
  });
  const [homeless] = placedProbes(definition).homeless;
  if (homeless !== undefined)
    throw new DefinitionRefused(
      `spec.endpoints: the readiness probe of "${homeless}" cannot run: a Pod runs one for ` +
        'each container, and each container already has one',
    );
  if (definition.network !== 'none')
    throw new DefinitionRefused(
      `spec.network: "${definition.network}" is only for the embedded daemon; each Pod has ` +
        'its own network',
    );
};
