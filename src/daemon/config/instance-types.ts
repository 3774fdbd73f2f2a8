import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { fieldPath } from '../../lib/field-path.ts';
import { DNS_LABEL_FORM, isDnsLabel } from '../../model/identifiers.ts';
import type { InstanceType } from '../../model/templates/instance-type.ts';
import { parseQuantity } from '../../model/quantities.ts';

const FILE_LIMIT_BYTES = 262_144;
const MOST_TYPES = 200;

/** Throws with every fault, by file and field. */
export const readInstanceTypes = (file: string): readonly InstanceType[] => {
  const parsed = FileSchema.safeParse(treeOf(file));
  if (parsed.success) return parsed.data.instanceTypes;
  const faults = parsed.error.issues.map(
    ({ path, message }) => `${file}: ${path.length === 0 ? '' : `${fieldPath(path)}: `}${message}`,
  );
  throw new Error(`errors in the instance types:\n${faults.join('\n')}`);
};

const text = (longest: number) =>
  z.string('must be text').max(longest, `must be at most ${longest} characters long`);

const quantity = z
  .union([z.string(), z.number()], 'must be a quantity such as 500m or 2Gi')
  .transform(String)
  .refine(
    (value) => (parseQuantity(value) ?? 0) > 0,
    'must be a quantity above 0, such as 500m or 2Gi',
  );

const Resources = z.record(text(253), quantity);

const InstanceTypeSchema = z
  .strictObject({
    name: text(63).refine(isDnsLabel, DNS_LABEL_FORM),
    showName: text(256).optional(),
    description: text(1_024).default(''),
    baseResources: z.strictObject({
      requests: Resources.default({}),
      limits: Resources.refine(
        ({ cpu, memory }) => cpu !== undefined && memory !== undefined,
        'must have cpu and memory',
      ),
    }),
    maxMultiplier: z
      .int('must be a whole number from 1 to 1024')
      .min(1, 'must be at least 1')
      .max(1_024, 'must be at most 1024')
      .default(1),
    extensions: z.record(text(253), text(4_096)).default({}),
  })
  .transform(({ showName, baseResources: { requests, limits }, ...type }): InstanceType => ({
    ...type,
    showName: showName ?? type.name,
    baseResources: { requests: { ...limits, ...requests }, limits },
  }));

const FileSchema = z.strictObject({
  instanceTypes: z
    .array(InstanceTypeSchema, 'must be a list')
    .max(MOST_TYPES, `must have at most ${MOST_TYPES} entries`)
    .refine(
      (types) => new Set(types.map(({ name }) => name)).size === types.length,
      'must not repeat a name',
    ),
});

const treeOf = (file: string): unknown => {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Error(
      `can't read instance types from ${file}: ` +
        `${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
  if (content.length > FILE_LIMIT_BYTES)
    throw new Error(
      `the file of instance types ${file} is larger than ${FILE_LIMIT_BYTES / 1_024} KiB`,
    );
  const document = parseDocument(content);
  const [broken] = document.errors;
  if (broken)
    throw new Error(
      `the file of instance types ${file} is not YAML: ${broken.message.split('\n')[0] ?? ''}`,
    );
  return document.toJS({ maxAliasCount: 50 });
};
