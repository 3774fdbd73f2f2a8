import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

export const built = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(resolve(`dist/${name}.js`)).href)) as T;
