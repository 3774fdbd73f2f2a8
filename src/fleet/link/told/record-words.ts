import { z } from 'zod';
import {
  MOST_PROMOTED,
  type PromotedChange,
  type PromotedKey,
} from '../../../contracts/fleet/promoted-keys.ts';
import { moment, wordFields, type ToldWords, MOST_TOLD } from './told-records.ts';
import {
  MOST_GLOBAL_TEMPLATES,
  type CopyReport,
  type GlobalTemplate,
  type GlobalTemplateChange,
} from '../../../contracts/fleet/global-templates.ts';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { MOST_VERSIONS } from '../../../model/templates/template-versions.ts';

const label = z.string().min(1).max(63);

const Keys = z.object({
  ...wordFields,
  keys: z
    .array(
      z.object({
        keyId: z.string().regex(/^[0-9A-Za-z]{12,64}$/),
        shortName: label,
        team: label,
        user: label,
        role: z.enum(['user', 'admin']),
        description: z.string().max(4_096),
        verifier: z.string().regex(/^[0-9a-f]{64}$/),
        gated: z.literal(true).optional(),
        makers: z.array(z.string().max(63)).max(64).optional(),
        issuedAt: moment,
        expiresAt: moment,
      }),
    )
    .max(MOST_PROMOTED),
  gone: z.array(z.string().max(64)).max(MOST_PROMOTED),
});

/** The worker receives all keys before the link carries requests. */
export const KEY_WORDS: ToldWords<PromotedKey, PromotedChange> = {
  path: '/keys',
  title: 'sandpool keys',
  atOnce: 100,
  withinMs: 5_000,
  most: MOST_PROMOTED,
  idOf: ({ keyId }) => keyId,
  put: (keys) => ({ keys }),
  parse: (word) => {
    const { number, whole, keys, gone, now } = Keys.parse(word);
    return { number, whole, ids: keys.map(({ keyId }) => keyId), change: { keys, gone, now } };
  },
};

const version = z.string().regex(/^[1-9][0-9]{0,14}$/);
const globalId = z.string().regex(/^[0-9A-Za-z_-]{12,64}$/);
const name = z.string().refine(isDnsLabel);

const Templates = z.object({
  ...wordFields,
  templates: z
    .array(
      z.object({
        globalId,
        name,
        version,
        createdAt: moment,
        // a newer manager may add unknown fields
        document: z.looseObject({}),
        earlier: z
          .array(z.object({ version, spec: z.string().max(MOST_TOLD) }))
          .max(MOST_VERSIONS)
          .optional(),
      }),
    )
    .max(1),
  gone: z.array(z.string().max(64)).max(1),
});

/**
 * Sent once the link carries requests. Exceeds the manager's limit of templates, since two
 * concurrent creations may.
 */
export const TEMPLATE_WORDS: ToldWords<GlobalTemplate, GlobalTemplateChange> = {
  path: '/templates',
  title: 'sandpool templates',
  atOnce: 1,
  withinMs: 30_000,
  most: 2 * MOST_GLOBAL_TEMPLATES,
  idOf: (template) => template.globalId,
  put: (templates) => ({ templates }),
  parse: (word) => {
    const { number, whole, templates, gone } = Templates.parse(word);
    const told = templates.map(({ earlier, ...template }) => ({
      ...template,
      ...(earlier === undefined ? {} : { earlier }),
    }));
    return {
      number,
      whole,
      ids: told.map((template) => template.globalId),
      change: { templates: told, gone, whole },
    };
  },
};

export const TemplateQuestion = z.object({ globalId });

const poolLabel = z.string().max(253);
export const TemplateReport: z.ZodType<CopyReport> = z.object({
  state: z.enum(['Synced', 'Pending', 'Conflict', 'Refused', 'Absent']),
  version: version.optional(),
  message: z.string().max(1_024).optional(),
  pools: z.array(z.object({ name: poolLabel, namespace: poolLabel })).max(50),
});
