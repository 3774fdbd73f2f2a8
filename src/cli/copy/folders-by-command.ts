import { randomUUID } from 'node:crypto';
import type { ReadContent } from '../../client/file-calls.ts';
import { CliFailure } from '../failure.ts';
import { printable } from '../terminal/printable.ts';
import type { SandboxPlace } from './sandbox-place.ts';

/** Longest time of the service for a command. */
const ARCHIVE_SECONDS = 300;

/*
 * Folders where the service has files and no archives: the archive goes as a file of the sandbox,
 * and the sandbox's own tar packs and unpacks it.
 */

/** Unpacks an archive into a folder that is there. */
export const unpackByCommand = async (
  place: SandboxPlace,
  archive: AsyncIterable<Buffer>,
): Promise<void> => {
  const { api, sandboxId, path, signal } = place;
  const temporary = temporaryName();
  try {
    await api.files.write(
      sandboxId,
      { path: temporary, content: archive },
      { mode: 0o600, signal },
    );
    await run(place, ['tar', '-xof', temporary, '-C', path]);
  } finally {
    await discard(place, temporary);
  }
};

/** Packs a folder and opens the archive. `discard` removes it there, also after an interruption. */
export const packByCommand = async (
  place: SandboxPlace,
): Promise<{ readonly content: ReadContent; readonly discard: () => Promise<void> }> => {
  const { api, sandboxId, path, signal } = place;
  const temporary = temporaryName();
  try {
    await run(place, ['tar', '-cf', temporary, '-C', path, '.']);
    return {
      content: await api.files.read(sandboxId, temporary, { as: ['file'], signal }),
      discard: () => discard(place, temporary),
    };
  } catch (error) {
    await discard(place, temporary);
    throw error;
  }
};

const temporaryName = (): string => `/tmp/.sandpool-cp-${randomUUID()}.tar`;

const discard = async ({ api, sandboxId }: SandboxPlace, path: string): Promise<void> => {
  await api.files.remove(sandboxId, path).catch(() => undefined);
};

const run = async (
  { api, sandboxId, signal }: SandboxPlace,
  command: readonly string[],
): Promise<void> => {
  const request = { command, timeoutSeconds: ARCHIVE_SECONDS };
  const { exitCode, stderr, timedOut } = await api.exec(sandboxId, request, { signal });
  if (exitCode === 0) return;
  if (timedOut) throw new CliFailure(`the sandbox took longer than ${ARCHIVE_SECONDS} s`);
  const [first = ''] = stderr.trim().split('\n');
  throw new CliFailure(`the sandbox says: ${printable(first) || `exit code ${exitCode}`}`);
};
