import type { ContainerDefinition } from '../../model/templates/template.ts';
import type { PreparedImage } from './unpacker/orders.ts';

/** The image names no command, and the template neither. */
export class NoCommand extends Error {
  override readonly name = 'NoCommand';
}

const HOME = '/home/sandbox';

/**
 * A container with what its image's configuration fills in, as Kubernetes does: `command` stands
 * for the Entrypoint, and then the Cmd is left out; `args` stand for the Cmd; variables of the
 * template go before those of the image. Throws NoCommand.
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
