import { readFileSync } from 'node:fs';

export interface Build {
  /** As package.json has it. */
  readonly version: string;
  readonly commit: string;
  /** When the commit was made: YYYY-MM-DD. */
  readonly date: string;
}

/** Reads what was built of which commit, as the build noted it; from source that is unknown. */
export const build = (): Build => ({
  version: textOf('../../../package.json', 'version'),
  commit: textOf('../../build.json', 'commit'),
  date: textOf('../../build.json', 'date'),
});

/** `0.1.0+1a2b3c4d5e6f`, by which two builds differ; from source without the commit. */
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
