import { createHash } from 'node:crypto';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import { CliFailure } from '../failure.ts';
import { printable } from '../terminal/printable.ts';

/**
 * Bytes in one command: as base64 they fit in a request's body of 1 MiB, and in what is kept of a
 * command's output.
 */
const PIECE_BYTES = 512 * 1024;
const PIECE_SECONDS = 60;
const ARCHIVE_SECONDS = 300;

export interface RemoteFile {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
  /** Permission bits. */
  readonly mode: number;
}

/** The paths of an upload: a temporary file, beside the file that it becomes. */
export interface Upload {
  readonly temporary: string;
  readonly path: string;
}

/**
 * Files of a sandbox, by commands in it: its own sh, base64, dd, sha256sum and tar. Every method
 * rejects with CliFailure where the sandbox says no, in the sandbox's words.
 */
export class SandboxFiles {
  readonly #api: SandpoolClient;
  readonly #sandboxId: string;
  readonly #signal: AbortSignal;

  constructor(api: SandpoolClient, sandboxId: string, signal: AbortSignal) {
    this.#api = api;
    this.#sandboxId = sandboxId;
    this.#signal = signal;
  }

  /** Whether it is a folder; rejects where there is nothing. */
  async isFolder(path: string): Promise<boolean> {
    return (await this.#run(IS_FOLDER, [path])) === 'folder';
  }

  /**
   * Begins an upload to `path`, or to `name` in it where it is a folder; undefined for `name` where
   * it must not be one.
   */
  async begin(path: string, name: string | undefined): Promise<Upload> {
    const [temporary = '', end = ''] = (await this.#run(BEGIN, [path, name ?? ''])).split('\0');
    return { temporary, path: end };
  }

  async append({ temporary }: Upload, piece: Buffer): Promise<void> {
    await this.#run(APPEND, [temporary], { stdin: piece.toString('base64') });
  }

  /** Compares what has arrived, and puts it in its place at once. */
  async finish(
    { temporary, path }: Upload,
    { sha256, mode }: { readonly sha256: string; readonly mode: number },
  ): Promise<void> {
    await this.#run(FINISH, [temporary, path, sha256, mode.toString(8)]);
  }

  /** Unpacks what has arrived into the folder, which is made where it is missing. */
  async unpack(
    { temporary }: Upload,
    { sha256, folder }: { readonly sha256: string; readonly folder: string },
  ): Promise<void> {
    await this.#run(UNPACK, [temporary, folder, sha256], { seconds: ARCHIVE_SECONDS });
  }

  /** Removes a temporary file, also after an interruption. Never rejects. */
  async discard({ temporary }: Pick<Upload, 'temporary'>): Promise<void> {
    await this.#api
      .exec(this.#sandboxId, {
        command: ['rm', '-f', '--', temporary],
        timeoutSeconds: PIECE_SECONDS,
      })
      .catch(() => undefined);
  }

  async describe(path: string): Promise<RemoteFile> {
    const [size, mode, sha256 = '', ...rest] = (
      await this.#run(DESCRIBE, [path], { seconds: ARCHIVE_SECONDS })
    ).split(' ');
    return {
      path: rest.join(' '),
      size: Number(size),
      mode: Number.parseInt(mode ?? '', 8) & 0o777,
      sha256,
    };
  }

  /** An archive of a folder's content, in a temporary file of the sandbox. */
  async pack(folder: string): Promise<RemoteFile> {
    return await this.describe(await this.#run(PACK, [folder], { seconds: ARCHIVE_SECONDS }));
  }

  /**
   * The file, piece by piece, and no more of it than `describe` told. Throws at its end where it is
   * not what that told.
   */
  async *read({ path, size, sha256 }: RemoteFile): AsyncGenerator<Buffer, void, undefined> {
    const hash = createHash('sha256');
    for (let place = 0, left = size; left > 0; place += 1) {
      const piece = Buffer.from(await this.#run(READ, [path, String(place)]), 'base64').subarray(
        0,
        left,
      );
      hash.update(piece);
      yield piece;
      left = piece.length < PIECE_BYTES ? 0 : left - piece.length;
    }
    if (hash.digest('hex') !== sha256)
      throw new CliFailure(`${path} changed while it was copied`, [
        'nothing was written; try again',
      ]);
  }

  async #run(
    script: string,
    args: readonly string[],
    { stdin, seconds = PIECE_SECONDS }: { readonly stdin?: string; readonly seconds?: number } = {},
  ): Promise<string> {
    const request = {
      command: ['/bin/sh', '-c', script, 'sandpool-cp', ...args],
      timeoutSeconds: seconds,
      ...(stdin === undefined ? {} : { stdin }),
    };
    const { exitCode, stdout, stderr, timedOut } = await this.#api.exec(this.#sandboxId, request, {
      signal: this.#signal,
    });
    if (exitCode === 0) return stdout;
    if (timedOut) throw new CliFailure(`the sandbox took longer than ${seconds} s`);
    const [first = ''] = stderr.trim().split('\n');
    const said = printable(first.replace(/^(\/bin\/sh|sandpool-cp): (\d+: |line \d+: )?/, ''));
    throw new CliFailure(
      `the sandbox says: ${said || `exit code ${exitCode}`}`,
      /No space left/.test(stderr)
        ? ['what a sandbox writes lies in its memory; df -h there shows how much is left']
        : [],
    );
  }
}

/** Cuts what is uploaded into pieces. */
export async function* piecesOf(
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  let waiting: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    waiting.push(chunk);
    size += chunk.length;
    if (size < PIECE_BYTES) continue;
    const all = Buffer.concat(waiting);
    let from = 0;
    for (; from + PIECE_BYTES <= all.length; from += PIECE_BYTES)
      yield all.subarray(from, from + PIECE_BYTES);
    waiting = [all.subarray(from)];
    size = all.length - from;
  }
  if (size > 0) yield Buffer.concat(waiting);
}

/** A path that begins with a dash is no option. */
const FAIL = 'fail() { echo "$*" >&2; exit 3; };';
const PATH = `p=$1; case $p in -*) p=./$p;; esac; ${FAIL}`;
const NEEDS =
  'for t in base64 sha256sum mktemp; do command -v $t >/dev/null || fail "there is no $t ' +
  'in this sandbox, which copying needs"; done;';
const IS_FOLDER =
  `${PATH} if [ -d "$p" ]; then printf folder; elif [ -f "$p" ]; then printf file; elif [ ` +
  '-e "$p" ]; then fail "$1 is neither a file nor a folder"; else fail "there is no $1"; fi';
const BEGIN = `${PATH} ${NEEDS}
  if [ -d "$p" ]; then
    [ -n "$2" ] || fail "$1 is a folder: name the file"
    p=\${p%/}/$2; [ ! -d "$p" ] || fail "$p is a folder"
  fi
  case $p in */) fail "there is no folder $1";; esac
  d=$(dirname -- "$p"); [ -d "$d" ] || fail "there is no folder $d"
  t=$(mktemp -- "$d/.sandpool-cp.XXXXXX") || exit 3
  printf '%s\\0%s' "$t" "$p"`;
const APPEND = 'base64 -d >>"$1"';
const SAME =
  's=$(sha256sum <"$1") || exit 3; [ "${s%% *}" = "$3" ] || fail "what arrived is not ' +
  'what was sent";';
const FINISH = `${FAIL} ${SAME} chmod "$4" "$1" && mv -f -- "$1" "$2"`;
const UNPACK = `${FAIL} ${SAME} mkdir -p -- "$2" && tar -xof "$1" -C "$2" && rm -f -- "$1"`;
const DESCRIBE =
  `${PATH} ${NEEDS} s=$(sha256sum <"$p") || exit 3; printf '%s %s %s %s' "$(wc -c <"$p" | ` +
  `tr -d ' ')" "$(stat -c %a -- "$p")" "\${s%% *}" "$p"`;
const PACK =
  `${PATH} ${NEEDS} t=$(mktemp) || exit 3; tar -cf "$t" -C "$p" . || { rm -f "$t"; exit 3; ` +
  '}; printf \'%s\' "$t"';
const READ = `dd if="$1" bs=${PIECE_BYTES} skip="$2" count=1 2>/dev/null | base64`;
