import { readFileSync } from 'node:fs';

export interface OperationExample {
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

const FILE = new URL('examples.json', import.meta.url);

let examples: Readonly<Record<string, OperationExample>> | undefined;

/**
 * Returns the examples by operation, which script/api-examples.ts writes from the answers of a real
 * daemon to the lines of docs/api-by-example.md. They are read when the document is first made.
 */
export const loadExamples = (): Readonly<Record<string, OperationExample>> =>
  (examples ??= JSON.parse(readFileSync(FILE, 'utf8')) as Readonly<
    Record<string, OperationExample>
  >);
