import { homedir } from 'node:os';
import { resolve } from 'node:path';

export type NamedTexts = Readonly<Record<string, string | undefined>>;

/** Only this function reads the environment. */
export const environment = (): NamedTexts => process.env;

export const variable = (env: NamedTexts, name: string): string | undefined =>
  env[name] === '' ? undefined : env[name];

export const defaultDataDir = (env: NamedTexts): string =>
  process.getuid?.() === 0
    ? '/var/lib/sandpool'
    : resolve(variable(env, 'HOME') ?? homedir(), '.local/share/sandpool');

/** Undefined if a settings file decides. */
export const plainDataDir = (env: NamedTexts, flag?: string): string | undefined => {
  const named = flag ?? variable(env, 'SANDPOOL_DATA_DIR');
  if (named !== undefined) return resolve(named);
  return variable(env, 'SANDPOOL_CONFIG') === undefined ? defaultDataDir(env) : undefined;
};
