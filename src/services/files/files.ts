import { sandboxPermits } from '../../actors/sandbox/commands/sandbox-permits.ts';
import { finished } from 'node:stream';
import type { Readable } from 'node:stream';
import {
  FileRefused,
  type FilePlace,
  type OpenedFile,
  type SandboxFiles,
} from '../../contracts/files.ts';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { fileChanged, noFilesHere, tooManyFiles } from '../../model/file-refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type {
  Abortable,
  FileOperations,
  FileTarget,
  OpenedContent,
  OpenFileRequest,
} from './file-operations.ts';
import { fileRefusalOf } from '../../actors/sandbox/commands/file-refusal.ts';

export interface FileDeps {
  readonly files: SandboxFiles;
  /** Rejects unless the caller's sandbox is running and has the container. */
  readonly requireRunning: (
    caller: Caller,
    sandboxId: string,
    container: string | undefined,
  ) => Promise<void>;
  /** Keeps the sandbox from being idle until the returned function is called. */
  readonly begin: (sandboxId: string) => () => void;
}

const MOST_OF_SANDBOX = 32;
const MOST_OF_TENANT = 128;

/** Operations of `/sandboxes/{sandboxId}/files`. */
export const fileOperations = (deps: FileDeps): FileOperations => {
  const { files } = deps;
  const turns = new FileTurns(deps);
  return {
    statFile: (caller, target, signal) =>
      turns.run(caller, target, (place) => files.stat(place, signal)),
    openFile: (caller, target, request) =>
      turns.hold(caller, target, (place, held) => openedContent(files, place, { request, held })),
    writeFile: async (caller, target, { content, overwrite, signal, ...request }) => {
      const order = { ...request, content, overwrite: overwrite === 'allowed' };
      try {
        return await turns.run(caller, target, (place) => files.write(place, order, signal));
      } catch (error) {
        const { code } = error as { readonly code?: string };
        throw overwrite === 'condition' && code === 'ALREADY_EXISTS' ? fileChanged() : error;
      }
    },
    unpackFiles: (caller, target, { archive, signal }) =>
      turns.run(caller, target, (place) => files.writeTree(place, archive, signal)),
    removeFile: (caller, target, { signal, ...request }) =>
      turns.run(caller, target, (place) => files.remove(place, request, signal)),
    listFiles: (caller, target, { signal, ...request }) =>
      turns.run(caller, target, (place) => files.list(place, request, signal)),
    moveFile: (caller, target, { signal, ...request }) =>
      turns.run(caller, target, (place) => files.move(place, request, signal)),
    makeFolder: (caller, target, { signal, ...request }) =>
      turns.run(caller, target, (place) => files.mkdir(place, request, signal)),
    watchFiles: async (caller, target, request) => {
      // Watching is not use: a watch does not keep a sandbox from being idle.
      const close = await turns.take(caller, target);
      const leaving = new AbortController();
      const end = (): void => {
        leaving.abort();
        close();
      };
      try {
        const batches = await files.watch(placeOf(target), request, leaving.signal);
        return {
          events: async function* (signal) {
            signal.addEventListener('abort', end, { once: true });
            if (!signal.aborted) yield* untilLost(batches);
          },
          close: end,
        };
      } catch (error) {
        end();
        throw fileRefusalOf(error, target.container);
      }
    },
  };
};

const openedContent = async (
  files: SandboxFiles,
  place: FilePlace,
  {
    request: { as, range, signal },
    held,
  }: {
    readonly request: Abortable<OpenFileRequest>;
    readonly held: (content: Readable) => Readable;
  },
): Promise<OpenedContent> => {
  const asTree = async () =>
    ({ kind: 'tree', content: held(await files.readTree(place, signal)) }) as const;
  if (as === 'tree') return await asTree();
  let opened: OpenedFile;
  try {
    opened = await files.open(place, range ? { range } : {}, signal);
  } catch (error) {
    const isFolder = error instanceof FileRefused && error.problem === 'is-a-folder';
    if (as === 'either' && isFolder) return await asTree();
    throw error;
  }
  return { kind: 'file', ...opened, content: held(opened.content) };
};

/**
 * Ends if the watch is lost because the sandbox or the link ended. The watcher must read the folder
 * again.
 */
async function* untilLost<T>(batches: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  try {
    yield* batches;
  } catch (error) {
    if (!(error instanceof OutcomeUnknown || error instanceof FileRefused)) throw error;
  }
}

const placeOf = ({ sandboxId, container, path }: FileTarget): FilePlace => ({
  id: sandboxId,
  path,
  container,
});

class FileTurns {
  readonly #deps: FileDeps;
  readonly #permit = sandboxPermits(
    { sandbox: MOST_OF_SANDBOX, tenant: MOST_OF_TENANT },
    tooManyFiles,
  );

  constructor(deps: FileDeps) {
    this.#deps = deps;
  }

  /** Also keeps the sandbox from being idle. Returns a function that releases both. */
  async begin(caller: Caller, target: FileTarget): Promise<() => void> {
    const leave = await this.take(caller, target);
    const end = this.#deps.begin(target.sandboxId);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      leave();
      end();
    };
  }

  async take(caller: Caller, { sandboxId, container }: FileTarget): Promise<() => void> {
    const { files, requireRunning } = this.#deps;
    await requireRunning(caller, sandboxId, container);
    if (!files.provided) throw noFilesHere('this deployment does not support files of sandboxes');
    return this.#permit(sandboxId, tenantKey(caller));
  }

  async run<T>(
    caller: Caller,
    target: FileTarget,
    work: (place: FilePlace) => Promise<T>,
  ): Promise<T> {
    const close = await this.begin(caller, target);
    try {
      return await work(placeOf(target));
    } catch (error) {
      throw fileRefusalOf(error, target.container);
    } finally {
      close();
    }
  }

  async hold<T>(
    caller: Caller,
    target: FileTarget,
    work: (place: FilePlace, held: (content: Readable) => Readable) => Promise<T>,
  ): Promise<T> {
    const close = await this.begin(caller, target);
    try {
      return await work(placeOf(target), (content) => {
        finished(content, close);
        return content;
      });
    } catch (error) {
      close();
      throw fileRefusalOf(error, target.container);
    }
  }
}
