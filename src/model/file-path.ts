import { invalidArgument } from './refusals.ts';

const MOST_BYTES = 4_095;
const MOST_NAME_BYTES = 255;

/** Base64 of the bytes is for names that are not UTF-8. */
export type PathForm = 'text' | 'base64';

/**
 * Refuses with INVALID_ARGUMENT unless the path is absolute and at most 4,095 bytes, without a NUL,
 * a part `..` or a name of more than 255 bytes.
 */
export const filePathOf = (field: string, text: string, form: PathForm = 'text'): Buffer => {
  const path = Buffer.from(text, form === 'base64' ? 'base64' : 'utf8');
  if (form === 'base64' && path.toString('base64') !== text)
    throw invalidArgument(field, 'is not base64');
  if (path.length === 0) throw invalidArgument(field, 'is required');
  if (path.length > MOST_BYTES)
    throw invalidArgument(field, `must be at most ${MOST_BYTES} bytes long`);
  if (path.includes(0)) throw invalidArgument(field, 'must not contain a NUL');
  if (path[0] !== SLASH) throw invalidArgument(field, 'must begin with /');
  for (const part of path.toString('latin1').split('/')) {
    if (part === '..') throw invalidArgument(field, 'must not have a part ..');
    if (part.length > MOST_NAME_BYTES)
      throw invalidArgument(field, `must have no name of more than ${MOST_NAME_BYTES} bytes`);
  }
  return path;
};

const SLASH = 0x2f;
