import { z } from 'zod';
import { ConfigSchema } from './schema.ts';

/** All forms derive from the key's path. */
export interface Setting {
  readonly path: string;
  readonly variable: string;
  /** Undefined for a secret, since all users can read a command line. */
  readonly flag: string | undefined;
  readonly option: string;
  readonly kind: 'text' | 'number' | 'list' | 'path';
  readonly description: string;
  readonly secret: boolean;
}

export const listSettings = (): readonly Setting[] => leavesOf(ConfigSchema, []);

const leavesOf = (group: z.ZodObject, above: readonly string[]): Setting[] =>
  Object.entries(group.shape).flatMap(([key, schema]) => {
    const path = [...above, key];
    return schema instanceof z.ZodObject ? leavesOf(schema, path) : [settingOf(path, schema)];
  });

const settingOf = (path: readonly string[], schema: z.core.$ZodType): Setting => {
  const { type, kind, description, secret } = z.toJSONSchema(schema, { io: 'input' });
  const words = path.flatMap((key) => key.split(/(?=[A-Z])/)).map((word) => word.toLowerCase());
  return {
    path: path.join('.'),
    variable: `SANDPOOL_${words.join('_').toUpperCase()}`,
    flag: secret === true ? undefined : `--${words.join('-')}`,
    option: words
      .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
      .join(''),
    kind:
      kind === 'path'
        ? 'path'
        : type === 'integer' || type === 'number'
          ? 'number'
          : type === 'array'
            ? 'list'
            : 'text',
    description: description ?? '',
    secret: secret === true,
  };
};
