import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  FileRefused,
  type FilePlace,
  type FileProblem,
  type ListRequest,
  type OpenRequest,
  type SandboxFiles,
  type WriteRequest,
  type WrittenFile,
} from '../../../src/contracts/files.ts';
import { rejection } from '../../support/harness/rejection.ts';

/** A running instance, and its files. */
export interface FilesUnderTest {
  readonly files: SandboxFiles;
  readonly id: string;
  /** A folder that its user may write to, empty. */
  readonly folder: string;
  /** The standard output of a shell script in it. */
  readonly sh: (script: string) => Promise<string>;
  /** Metadata is kept with its files. */
  readonly keepsMetadata: boolean;
  /** Of one that never was. */
  readonly unknownId: string;
  /** A folder of few MiB; absent where there is none. */
  readonly smallFolder?: string;
}

export const never = new AbortController().signal;
// All calls of a suite have it.
setMaxListeners(0, never);

/** Calls of the contract, in the words of tests: paths are texts below the folder. */
export class Place {
  readonly under: FilesUnderTest;

  constructor(under: FilesUnderTest) {
    this.under = under;
  }

  get files(): SandboxFiles {
    return this.under.files;
  }

  at(path: string | Buffer): FilePlace {
    const below = Buffer.from(path);
    return {
      id: this.under.id,
      path:
        below[0] === SLASH ? below : Buffer.concat([Buffer.from(`${this.under.folder}/`), below]),
    };
  }

  /** A text comes as a stream, bytes as they are. */
  put(
    path: string | Buffer,
    content: string | Buffer | Readable,
    request: Partial<WriteRequest> = {},
    signal = never,
  ): Promise<WrittenFile> {
    const source = typeof content === 'string' ? Readable.from([Buffer.from(content)]) : content;
    return this.files.write(
      this.at(path),
      { content: source, overwrite: true, parents: false, ...request },
      signal,
    );
  }

  async get(path: string | Buffer, request: OpenRequest = {}): Promise<Buffer> {
    const { content } = await this.files.open(this.at(path), request, never);
    return await buffer(content);
  }

  /** Paths of all entries, page by page. */
  async list(path: string, request: Partial<ListRequest> = {}): Promise<string[]> {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.files.list(
        this.at(path),
        { depth: 1, limit: 1_000, ...request, ...(cursor === undefined ? {} : { cursor }) },
        never,
      );
      found.push(...page.entries.map((entry) => entry.path.toString('latin1')));
      cursor = page.next;
    } while (cursor !== undefined);
    return found;
  }
}

const SLASH = 0x2f;

/** The problem that a call is refused with. */
export const problemOf = async (call: Promise<unknown>): Promise<FileProblem> => {
  const error = await rejection(call);
  if (error instanceof FileRefused) return error.problem;
  throw error;
};
