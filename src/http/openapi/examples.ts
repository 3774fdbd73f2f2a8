/** Written by script/api-examples.ts from the answers of a real daemon. */
export interface OperationExample {
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

export const EXAMPLES: Readonly<Record<string, OperationExample>> = {};
