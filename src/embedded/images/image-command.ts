import type { ContainerDefinition } from '../../model/templates/template.ts';
import type { PreparedImage } from './unpacker/orders.ts';

export class NoCommand extends Error {
  override readonly name = 'NoCommand';
}

const HOME = '/home/sandbox';

/**
 * Completes a container as Kubernetes does: `command` replaces the Entrypoint and drops the Cmd,
 * `args` replace the Cmd. Throws NoCommand.
 */
export const withImageConfig = (
  container: ContainerDefinition,
  { config, user }: PreparedImage,
): ContainerDefinition => {
  const { command, args, workingDir } = container.given ?? {};
  const argv = command
    ? [...command, ...(args ?? [])]
    : [...config.entrypoint, ...(args ?? config.cmd)];
  if (argv.length === 0) throw new NoCommand('neither the template nor the image names a command');
  return {
    ...container,
    argv,
    env: { USER: user.name, LOGNAME: user.name, ...config.env, ...container.env },
    workingDir: workingDir ?? config.workingDir ?? HOME,
  };
};
