import { MOST_FILE_BYTES, type ClaimFile } from '../../../model/claim-terms.ts';
import { filePathOf } from '../../../model/file-path.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import type { ClaimFileBody } from './claim-schema.ts';

/**
 * Returns the files of a claim as bytes. Refuses with INVALID_ARGUMENT, which names the field, what
 * is no path or no base64, a file that is named twice, and content of more than 256 KiB together.
 */
export const claimFilesOf = (given: readonly ClaimFileBody[]): readonly ClaimFile[] => {
  const named = new Map<string, number>();
  let bytes = 0;
  return given.map(({ path: written, content: text, encoding, mode }, index) => {
    const path = filePathOf(`files[${index}].path`, written);
    const name = nameOf(path);
    const other = named.get(name);
    if (other !== undefined)
      throw invalidArgument(`files[${index}].path`, `names the same file as files[${other}].path`);
    named.set(name, index);
    const content = Buffer.from(text, encoding ?? 'utf8');
    if (encoding === 'base64' && content.toString('base64') !== text)
      throw invalidArgument(`files[${index}].content`, 'is not base64');
    bytes += content.length;
    if (bytes > MOST_FILE_BYTES)
      throw invalidArgument('files', `must have at most ${MOST_FILE_BYTES} bytes together`);
    return { path, content, ...(mode === undefined ? {} : { mode }) };
  });
};

/** `/a/./b` and `/a//b` are one name. */
const nameOf = (path: Buffer): string =>
  path
    .toString('latin1')
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
