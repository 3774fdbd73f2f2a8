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
        ? `must be the name of a container image; "${image.slice(0, 80)}" is for the ` +
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
      `spec.endpoints: the readiness probe of "${homeless}" has no place: a Pod runs ` +
        'one for each container, and each has one already',
    );
  if (definition.network !== 'none')
    throw new DefinitionRefused(
      `spec.network: "${definition.network}" is for the embedded daemon; a Pod has a ` +
        'network of its own',
    );
};
