import { cpus, totalmem } from 'node:os';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import type { ContainerDefinition, InstanceDefinition } from '../../model/templates/template.ts';
import { checkVolumeMounts } from './volume-mounts.ts';

/** Memory in bytes. */
export interface MachineSize {
  readonly cpuCores: number;
  readonly memoryBytes: number;
}

export const thisMachine = (): MachineSize => ({
  cpuCores: cpus().length,
  memoryBytes: totalmem(),
});

export interface DefinitionTerms {
  readonly isBare: boolean;
  readonly machine: MachineSize;
  readonly canBindFolders: () => boolean;
  readonly refusalOfImage: (image: string) => string | undefined;
}

export const checkDefinition = (
  definition: InstanceDefinition,
  { isBare, machine, refusalOfImage, canBindFolders }: DefinitionTerms,
): void => {
  const { containers, volumes = [] } = definition;
  refuseKubernetesFields(definition);
  const [container, ...others] = containers;
  if (!container || others.length > 0)
    throw new DefinitionRefused('spec.containers: the embedded driver runs exactly one container');
  const refusal = refusalOfImage(container.image);
  if (refusal !== undefined) throw new DefinitionRefused(`spec.containers[0].image: ${refusal}`);
  if (container.image !== 'host' && isBare)
    throw new DefinitionRefused(
      'spec.containers[0].image: must be "host", because there is no isolation',
    );
  checkSize(container, machine);
  if (volumes.length > 0 && isBare)
    throw new DefinitionRefused('overrides.volumes: cannot be mounted without isolation');
  checkVolumeMounts(volumes, { canBindFolders });
};

/** Names the field. */
export const refuseKubernetesFields = ({
  placement = {},
  containers,
}: InstanceDefinition): void => {
  const [first] = containers;
  const fields = Object.keys(placement);
  if (first?.extendedResources) fields.push('containers[0].extendedResources');
  if (first?.ephemeralStorageBytes !== undefined) fields.push('containers[0].ephemeralStorage');
  if (fields.length > 0)
    throw new DefinitionRefused(
      `spec.${fields[0]}: is only for Kubernetes; this daemon runs sandboxes on one machine`,
    );
};

const checkSize = ({ cpuCores, memoryBytes }: ContainerDefinition, machine: MachineSize): void => {
  if (cpuCores > machine.cpuCores)
    throw new DefinitionRefused(
      `spec.containers[0].resources.limits.cpu: this machine has ${machine.cpuCores}`,
    );
  if (memoryBytes > machine.memoryBytes) {
    throw new DefinitionRefused(
      'spec.containers[0].resources.limits.memory: this machine has ' +
        `${Math.floor(machine.memoryBytes / 2 ** 20)}Mi`,
    );
  }
};
