import type { Body } from '../client/operation-request.ts';
import { MOST_FILE_BYTES, MOST_FILES } from '../../model/claim-terms.ts';
import type { CliContext } from './context.ts';
import { fileSource, isFolderHere, streamSource } from './local-files.ts';
import { CliFailure } from './failure.ts';

type ClaimFiles = NonNullable<Body<'claimSandbox'>['files']>;

/** `-` is standard input. */
interface FilePair {
  readonly local: string;
  readonly remote: string;
}

export const filePair = (text: string, before: readonly FilePair[] = []): readonly FilePair[] => {
  const at = text.indexOf(':/');
  if (at < 1)
    throw new CliFailure(`--file ${text}: an absolute path must follow the colon`, [
      'such as --file settings.json:/home/sandbox/settings.json',
    ]);
  return [...before, { local: text.slice(0, at), remote: text.slice(at + 1) }];
};

/** With their local permission bits. */
export const claimFiles = async (
  { stdin }: Pick<CliContext, 'stdin'>,
  pairs: readonly FilePair[] = [],
): Promise<ClaimFiles | undefined> => {
  if (pairs.length === 0) return undefined;
  if (pairs.length > MOST_FILES)
    throw tooMuch(`${pairs.length} files are too many for a claim; the maximum is ${MOST_FILES}`);
  const files: ClaimFiles[number][] = [];
  let left = MOST_FILE_BYTES;
  for (const { local, remote } of pairs) {
    if (local !== '-' && (await isFolderHere(local)) === true)
      throw tooMuch(`${local} is a folder; a claim takes only files`);
    const source = local === '-' ? streamSource(stdin) : await fileSource(local);
    const pieces: Buffer[] = [];
    for await (const piece of source.bytes) {
      left -= piece.length;
      if (left < 0)
        throw tooMuch(`${local} is too large: the files of a claim may have 256 KiB together`);
      pieces.push(Buffer.from(piece));
    }
    files.push({
      path: remote,
      content: Buffer.concat(pieces).toString('base64'),
      encoding: 'base64',
      mode: source.mode === undefined ? undefined : `0${source.mode.toString(8).padStart(3, '0')}`,
    });
  }
  return files;
};

const tooMuch = (why: string): CliFailure =>
  new CliFailure(why, ['claim first, then copy: sandpool cp LOCAL "$SANDBOX:/PATH"']);
