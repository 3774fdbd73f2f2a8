import { readFileSync } from 'node:fs';

export interface OperationExample {
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

const FILE = new URL('examples.json', import.meta.url);

let examples: Readonly<Record<string, OperationExample>> | undefined;

/** Recorded by script/api-examples.ts from a real daemon. */
export const loadExamples = (): Readonly<Record<string, OperationExample>> =>
  (examples ??= JSON.parse(readFileSync(FILE, 'utf8')) as Readonly<
    Record<string, OperationExample>
  >);
