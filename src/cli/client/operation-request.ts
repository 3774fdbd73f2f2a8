import { OPERATIONS, type Operations } from './generated/api.ts';

export type OperationId = keyof Operations;

/** A value to send, which may be read-only: nothing of it is changed. */
export type Sent<T> = T extends readonly (infer E)[]
  ? readonly Sent<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Sent<T[K]> }
    : T;

/** The parts that a call takes: those of its path, its query, its body. */
interface CallParts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: object;
  readonly body?: unknown;
}

/** The parts that a call of this operation takes. */
export type OperationInput<K extends OperationId> = CallParts & Sent<Omit<Operations[K], 'answer'>>;
export type OperationAnswer<K extends OperationId> = Operations[K]['answer'];

export interface CallOptions {
  /** Gives the call up; what was asked may still happen. */
  readonly signal?: AbortSignal;
}

export interface OperationRequest {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

const NAMES_POOL_OR_ENV = /^\/(?:sandboxpools|envs)\/\{name\}/;

/** The request that calls the operation. `namespace`: of the pool or env that it names. */
export const operationRequest = (
  id: OperationId,
  { params = {}, query = {}, body }: CallParts,
  namespace?: string,
): OperationRequest => {
  const { method, path } = OPERATIONS[id];
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  return {
    method,
    path: `${filled}${queryText(NAMES_POOL_OR_ENV.test(path) ? { ...query, namespace } : query)}`,
    body,
  };
};

/** A map has one for each of its pairs. */
const parametersOf = (name: string, value: unknown): readonly [string, string][] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).map(([key, part]) => [`${name}.${key}`, String(part)])
    : [[name, String(value)]];

const queryText = (query: object): string => {
  const given = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .flatMap(([name, value]) => parametersOf(name, value));
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
};

/** Carries out one operation; what groups of calls by noun are made with. */
export type Call = <K extends OperationId>(
  id: K,
  input: OperationInput<K>,
  options?: CallOptions,
) => Promise<OperationAnswer<K>>;
