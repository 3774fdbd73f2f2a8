import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A module of the daemon as it is built; script/bench starts in the root folder. */
export const built = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(resolve(`dist/${name}.js`)).href)) as T;
