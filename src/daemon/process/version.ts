import { readFileSync } from 'node:fs';

export interface Build {
  readonly version: string;
  readonly commit: string;
  readonly date: string;
}

/** The commit is unknown when run from source. */
export const build = (): Build => ({
  version: textOf('../../../package.json', 'version'),
  commit: textOf('../../build.json', 'commit'),
  date: textOf('../../build.json', 'date'),
});

/** `0.1.0+1a2b3c4d5e6f`, unique per build. */
export const version = (): string => {
  const { version: released, commit } = build();
  return commit === UNKNOWN ? released : `${released}+${commit}`;
};

const UNKNOWN = 'unknown';

const textOf = (file: string, field: string): string => {
  try {
    const read: unknown = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
    const value: unknown =
      typeof read === 'object' && read !== null ? Reflect.get(read, field) : undefined;
    return typeof value === 'string' ? value : UNKNOWN;
  } catch {
    return UNKNOWN;
  }
};
