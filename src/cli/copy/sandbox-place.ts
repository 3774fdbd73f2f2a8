import { posix } from 'node:path';
import { ApiError } from '../client/api-error.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import { CliFailure } from '../common/failure.ts';

export interface SandboxPlace {
  readonly api: SandpoolClient;
  readonly sandboxId: string;
  /** Absolute, without `..`; keeps a trailing slash. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/**
 * A relative path begins at the working folder of commands, which a shell in the sandbox prints.
 * `..` removes the part before it, as in a shell.
 */
export const sandboxPlace = async (
  api: SandpoolClient,
  { sandboxId, path }: { readonly sandboxId: string; readonly path: string },
  signal: AbortSignal,
): Promise<SandboxPlace> => {
  const absolute = posix.isAbsolute(path)
    ? path
    : `${await homeOf(api, sandboxId, signal)}/${path}`;
  return { api, sandboxId, path: posix.normalize(absolute), signal };
};

/** Undefined if nothing is there. */
export const isFolderThere = async ({
  api,
  sandboxId,
  path,
  signal,
}: SandboxPlace): Promise<boolean | undefined> => {
  try {
    await api.call('listFiles', { params: { sandboxId }, query: { path, limit: 1 }, signal });
    return true;
  } catch (error) {
    if (saysNo(error, 'FILE_NOT_FOUND')) return undefined;
    if (saysNo(error, 'CONFLICT')) return false;
    throw error;
  }
};

export const saysNo = (error: unknown, errorCode: string): error is ApiError =>
  error instanceof ApiError && error.errorCode === errorCode;

const HOME_SECONDS = 60;

const homeOf = async (
  api: SandpoolClient,
  sandboxId: string,
  signal: AbortSignal,
): Promise<string> => {
  const request = { command: ['/bin/sh', '-c', 'pwd'], timeoutSeconds: HOME_SECONDS };
  const { exitCode, stdout } = await api.call('execInSandbox', {
    params: { sandboxId },
    body: request,
    signal,
  });
  const home = stdout.replace(/\n$/, '');
  if (exitCode !== 0 || !posix.isAbsolute(home))
    throw new CliFailure('relative paths need a shell, which the sandbox lacks', [
      `use an absolute path, such as ${sandboxId}:/tmp/note`,
    ]);
  return home;
};
