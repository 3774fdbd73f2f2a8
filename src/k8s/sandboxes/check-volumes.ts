import { DefinitionRefused, OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import type { Volumes } from '../../contracts/volumes.ts';
import type { LaunchOrder } from '../../model/sandbox.ts';

/**
 * Rejects with DefinitionRefused if the namespace does not offer a volume, and with OutcomeUnknown
 * if the volumes cannot be listed now.
 */
export const checkVolumes = async (
  { record, definition }: LaunchOrder,
  volumes: Volumes,
): Promise<void> => {
  const { volumes: mounts = [] } = definition;
  if (mounts.length === 0) return;
  const offered = await volumes.list(record.poolOwner.namespace).catch((error: unknown) => {
    throw new OutcomeUnknown('the volumes of the namespace cannot be listed right now', {
      cause: error,
    });
  });
  mounts.forEach(({ claimName }, index) => {
    if (offered.some((volume) => volume.claimName === claimName)) return;
    throw new DefinitionRefused(
      `overrides.volumes[${index}].claimName: the volume ${claimName} no longer exists`,
    );
  });
};
