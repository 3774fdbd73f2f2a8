import { readFileSync } from 'node:fs';

export interface OperationExample {
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

const FILE = new URL('examples.json', import.meta.url);

let examples: Readonly<Record<string, OperationExample>> | undefined;

/**
 * Examples by operation. script/api-examples.ts records them from a real daemon that runs
 * docs/api-by-example.md. Loaded on first use.
 */
export const loadExamples = (): Readonly<Record<string, OperationExample>> =>
  (examples ??= JSON.parse(readFileSync(FILE, 'utf8')) as Readonly<
    Record<string, OperationExample>
  >);
