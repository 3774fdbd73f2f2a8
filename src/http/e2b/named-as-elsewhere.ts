import { restIdOf, sandboxNamed } from './sandbox-id.ts';

/** Returns a body or an answer with the names that the REST API has for sandbox and pool. */
export const namedAsElsewhere = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { sandboxID, templateID } = value as Readonly<Record<string, unknown>>;
  const sandbox = typeof sandboxID === 'string' ? sandboxNamed(sandboxID) : undefined;
  return {
    ...(sandbox === undefined ? {} : { sandboxId: restIdOf(sandbox) }),
    ...(typeof templateID === 'string' ? { poolName: templateID } : {}),
  };
};
