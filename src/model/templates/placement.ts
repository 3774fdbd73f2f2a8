import { z } from 'zod';
import { parseQuantity, QUANTITY_PATTERN } from '../quantities.ts';

/**
 * Kubernetes' terms and syntax, only for stored templates, which are an admin's. A driver refuses
 * fields that it doesn't support; a missing class or node shows at launch.
 */

const SUBDOMAIN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
const PART = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
const SUBDOMAIN_PATTERN = `^${SUBDOMAIN}$`;
const KEY_PATTERN = `^(${SUBDOMAIN}/)?${PART}$`;
const VALUE_PATTERN = `^(${PART})?$`;
const MOST_LABELS = 32;
const MOST_TOLERATIONS = 32;
const MOST_TERMS = 16;
const MOST_VALUES = 64;
const MAX_PREFIX = 253;
const MAX_KEY = MAX_PREFIX + 64;
const MAX_SECONDS = 2_147_483_647;

const objectName = z
  .string()
  .max(MAX_PREFIX)
  .regex(
    new RegExp(SUBDOMAIN_PATTERN),
    'must be a DNS-1123 subdomain: a-z, 0-9, inner hyphens and dots',
  )
  .meta({ pattern: SUBDOMAIN_PATTERN });
export const isLabelKey = (text: string): boolean =>
  new RegExp(KEY_PATTERN).test(text) && text.lastIndexOf('/') <= MAX_PREFIX;

export const isLabelText = (text: string): boolean => {
  const [key = '', value, ...more] = text.split('=');
  return value !== undefined && more.length === 0 && isLabel(key, value);
};

const labelKey = z
  .string()
  .max(MAX_KEY)
  .refine(isLabelKey, 'must be the key of a label: NAME or DOMAIN/NAME')
  .meta({ pattern: KEY_PATTERN });
export const isLabel = (key: string, value: string): boolean =>
  isLabelKey(key) && value.length <= 63 && new RegExp(VALUE_PATTERN).test(value);

const labelValue = z
  .string()
  .max(63)
  .regex(
    new RegExp(VALUE_PATTERN),
    'must be the value of a label: letters, digits, inner -, _ and .',
  )
  .meta({ pattern: VALUE_PATTERN });

const NodeSelector = z
  .record(z.string(), labelValue)
  .superRefine((labels, context) => {
    const keys = Object.keys(labels);
    const wrong = keys.find((key) => !isLabelKey(key));
    const add = (message: string, path: string[]): void => {
      context.addIssue({ code: 'custom', path, message });
    };
    if (keys.length > MOST_LABELS) add(`must be at most ${MOST_LABELS} labels`, []);
    if (wrong !== undefined) add('must be the key of a label: NAME or DOMAIN/NAME', [wrong]);
  })
  .meta({ maxProperties: MOST_LABELS });

const MOST_ANNOTATION = 4_096;
/** Domains with a meaning for the cluster or a daemon. */
const RESERVED = /(^|\.)(kubernetes\.io|k8s\.io|sandpool\.dev|karpenter\.sh)\//;

const podMetadata = (value: z.ZodString, what: string) =>
  z
    .record(z.string(), value)
    .superRefine((given, context) => {
      const keys = Object.keys(given);
      const add = (message: string, path: string[]): void => {
        context.addIssue({ code: 'custom', path, message });
      };
      if (keys.length > MOST_LABELS) add(`must be at most ${MOST_LABELS} ${what}`, []);
      for (const key of keys) {
        if (!isLabelKey(key)) add('must be a key like that of a label: NAME or DOMAIN/NAME', [key]);
        else if (RESERVED.test(key))
          add('must not be in the domain kubernetes.io, k8s.io, sandpool.dev or karpenter.sh', [
            key,
          ]);
      }
    })
    .meta({ maxProperties: MOST_LABELS });

const annotation = z
  .string()
  .max(MOST_ANNOTATION)
  .refine((text) => !text.includes('\0'), 'must not contain a NUL')
  .meta({ pattern: '^[^\\u0000]*$' });

const Toleration = z
  .strictObject({
    key: labelKey.optional(),
    operator: z.enum(['Equal', 'Exists']).optional(),
    value: labelValue.optional(),
    effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
    tolerationSeconds: z.int().min(0).max(MAX_SECONDS).optional(),
  })
  .superRefine(({ key, operator = 'Equal', value = '', effect, tolerationSeconds }, context) => {
    const add = (field: string, message: string): void => {
      context.addIssue({ code: 'custom', path: [field], message });
    };
    if (key === undefined && operator !== 'Exists')
      add('operator', 'must be Exists if key is absent');
    if (operator === 'Exists' && value !== '') add('value', 'must be absent if operator is Exists');
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      add('effect', 'must be NoExecute if tolerationSeconds is set');
    }
  });

const Requirement = z
  .strictObject({
    key: labelKey,
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']),
    values: z.array(labelValue).max(MOST_VALUES).optional(),
  })
  .superRefine(({ operator, values = [] }, context) => {
    const problem = problemOfValues(operator, values);
    if (problem !== undefined)
      context.addIssue({ code: 'custom', path: ['values'], message: problem });
  });

const problemOfValues = (operator: string, values: readonly string[]): string | undefined => {
  if (operator === 'In' || operator === 'NotIn') {
    return values.length > 0
      ? undefined
      : `must be at least 1 items long where operator is ${operator}`;
  }
  if (operator === 'Gt' || operator === 'Lt') {
    const isNumber = values.length === 1 && /^[0-9]{1,18}$/.test(values[0] ?? '');
    return isNumber ? undefined : `must be one whole number where operator is ${operator}`;
  }
  return values.length === 0 ? undefined : `must be absent if operator is ${operator}`;
};

const Term = z.strictObject({ matchExpressions: z.array(Requirement).min(1).max(MOST_TERMS) });

const NodeAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z
    .strictObject({ nodeSelectorTerms: z.array(Term).min(1).max(MOST_TERMS) })
    .optional(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight: z.int().min(1).max(100), preference: Term }))
    .max(MOST_TERMS)
    .optional(),
});

export const PlacementFields = {
  runtimeClassName: objectName.optional(),
  nodeSelector: NodeSelector.optional(),
  tolerations: z.array(Toleration).max(MOST_TOLERATIONS).optional(),
  /** Only affinity to nodes. */
  affinity: z.strictObject({ nodeAffinity: NodeAffinity }).optional(),
  priorityClassName: objectName.optional(),
  /** `false` gives the Pod its own user namespace. */
  hostUsers: z.literal(false).optional(),
  podLabels: podMetadata(labelValue, 'labels').optional(),
  podAnnotations: podMetadata(annotation, 'annotations').optional(),
};

const MOST_RESOURCES = 16;
const MOST_UNITS = 1_000_000;
const MAX_STORAGE = 2 ** 50;

/** Kubernetes' own resources have one of these domains, or none. */
const isExtended = (name: string): boolean =>
  isLabelKey(name) &&
  name.includes('/') &&
  !/(^|\.)kubernetes\.io\//.test(name) &&
  !name.startsWith('requests.');

const extendedNames =
  'must be DOMAIN/NAME, such as nvidia.com/gpu, and not in the domain kubernetes.io';

const ExtendedResources = z
  .record(z.string(), z.int().min(1).max(MOST_UNITS))
  .superRefine((amounts, context) => {
    const names = Object.keys(amounts);
    const wrong = names.find((name) => !isExtended(name));
    const add = (message: string, path: string[]): void => {
      context.addIssue({ code: 'custom', path, message });
    };
    if (names.length > MOST_RESOURCES) add(`must be at most ${MOST_RESOURCES} resources`, []);
    if (wrong !== undefined) add(extendedNames, [wrong]);
  })
  .meta({ maxProperties: MOST_RESOURCES });

const isStorage = (text: string): boolean => {
  const bytes = parseQuantity(text);
  return bytes !== undefined && bytes >= 2 ** 20 && bytes <= MAX_STORAGE;
};

export const DeviceFields = {
  /** Whole numbers by resource name: `nvidia.com/gpu`. */
  extendedResources: ExtendedResources.optional(),
  /** Disk space on its node: the limit, and the same amount reserved. */
  ephemeralStorage: z
    .string()
    .refine(isStorage, 'must be a quantity of bytes from 1Mi to 1Pi')
    .meta({ pattern: QUANTITY_PATTERN, maxLength: 32 })
    .optional(),
};
const DEVICE_FIELDS = ['extendedResources', 'ephemeralStorage'] as const;

const PlacementSchema = z.object(PlacementFields);
type PlacementDocument = z.infer<typeof PlacementSchema>;

export type Placement = {
  readonly [Field in keyof PlacementDocument]: NonNullable<PlacementDocument[Field]>;
};

const FIELDS = Object.keys(PlacementFields) as readonly (keyof PlacementDocument)[];

export const placementIn = (spec: PlacementDocument): Placement | undefined => {
  const given = FIELDS.flatMap((field) =>
    spec[field] === undefined ? [] : [[field, spec[field]]],
  );
  return given.length === 0 ? undefined : (Object.fromEntries(given) as Placement);
};

interface Granted extends PlacementDocument {
  readonly network?: 'none' | 'host';
  readonly containers?: readonly { readonly [Field in (typeof DEVICE_FIELDS)[number]]?: unknown }[];
}

/** Only a stored template may have such a field. */
export const grantedFieldIn = (spec: Granted): readonly (string | number)[] | undefined => {
  if (spec.network === 'host') return ['network'];
  const field = FIELDS.find((each) => spec[each] !== undefined);
  if (field !== undefined) return [field];
  for (const [index, container] of (spec.containers ?? []).entries()) {
    const device = DEVICE_FIELDS.find((each) => container[each] !== undefined);
    if (device !== undefined) return ['containers', index, device];
  }
  return undefined;
};
