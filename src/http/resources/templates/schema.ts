import { z } from 'zod';
import { TEMPLATE_STATES } from '../../../model/fleet/cluster.ts';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { noSuchTemplate } from '../../../model/refusals.ts';
import { MAX_TEMPLATE_BYTES, POOL_SIZINGS } from '../../../model/templates/template.ts';
import type { PathParams } from '../../corridor/route.ts';
import {
  limit,
  maybe,
  ofCluster,
  offset,
  pageOf,
  text,
  timestamp,
} from '../../corridor/common-schema.ts';
import { InstanceShape } from '../instance-shape.ts';

export const TemplatePath: PathParams<{ name: string }> = {
  schema: z.object({ name: z.string().refine(isDnsLabel) }),
  otherwise: noSuchTemplate,
};

const crdJson = z.string().meta({ maxLength: MAX_TEMPLATE_BYTES });

export const CreateTemplateBody = z.object({
  crdJson: crdJson.describe(
    'A [template](templates.md) as JSON, at most 256 KiB; unknown fields are refused.',
  ),
  syncSource: maybe(z.literal('global')).describe(
    "At a fleet's manager: the template is made on [all its clusters](fleet.md#global-templates).",
  ),
});

export const UpdateTemplateBody = z.object({
  crdJson: maybe(crdJson).describe(
    'The whole template; `description`, `docs` and `poolSizing` stay where it names none.',
  ),
  description: maybe(text(1_024)).describe('The empty text removes it; so with `docs`.'),
  docs: maybe(text(65_536)),
  poolSizing: maybe(z.enum(POOL_SIZINGS)),
  syncSource: maybe(z.enum(['global', ''])).describe(
    "`global` at a fleet's manager: it is on [all its clusters](fleet.md#global-templates) from " +
      'then on; the empty text: no more.',
  ),
});

export const TemplateListQuery = z.object({ clusterID: ofCluster, limit, offset });
export const TemplateQuery = z.object({ clusterID: ofCluster });

const Template = z
  .object({
    name: z.string(),
    version: z.string().describe('A whole number, moved by each change.'),
    description: maybe(z.string()),
    createdAt: timestamp,
    cpu: z.string().describe('Of an instance of it.'),
    memory: z.string().describe('Of an instance of it.'),
    ...InstanceShape,
    syncSource: maybe(z.literal('global')).describe(
      'It comes from a file of `templatesDir`, or is the same on all clusters of a fleet; left ' +
        'out where it was made here.',
    ),
    fleet: maybe(z.enum(['source', 'copy'])).describe(
      'It is the same on [all clusters of a fleet](fleet.md#global-templates): `source` at the ' +
        'manager, where it is changed; `copy` at the others.',
    ),
    docs: maybe(z.string()).describe('For people, at length.'),
    crdYaml: z.string().describe('The template as a manifest.'),
    poolSizing: maybe(z.enum(POOL_SIZINGS)),
  })
  .meta({ id: 'Template' });

export const TemplateEnvelope = z.object({ template: Template }).meta({ id: 'TemplateEnvelope' });
export const TemplatePage = pageOf(Template).meta({ id: 'TemplatePage' });
const TemplateCluster = z
  .object({
    clusterID: z.string(),
    state: z
      .enum(TEMPLATE_STATES)
      .describe(
        '`Synced`: it has the version that is current; `Pending`: not yet; `Conflict`: a ' +
          'template of that name which is not the manager’s is in its way; `Refused`: it can’t ' +
          'run it; `Absent`: it knows nothing of it; `Unsupported`: it is of a version before ' +
          'global templates; `Unreachable`: it does not answer.',
      ),
    version: maybe(z.string()).describe('The one that it has.'),
    message: maybe(z.string()).describe('Why it does not have the current one, in its own words.'),
    at: maybe(timestamp).describe(
      'When it said so, or, where it does not answer, was heard of last; left out where it was ' +
        'not since the daemon started.',
    ),
  })
  .meta({ id: 'TemplateCluster' });
export const TemplateClusterList = z
  .object({
    total: z.int(),
    items: z.array(TemplateCluster).describe('By id; none where the template is not global.'),
  })
  .meta({ id: 'TemplateClusterList' });

export const TemplateDeletion = z
  .object({ name: z.string(), status: z.literal('deleted') })
  .meta({ id: 'TemplateDeletion' });

export type TemplateClusterWire = z.infer<typeof TemplateCluster>;
export type TemplateWire = z.infer<typeof Template>;
export type TemplateDeletionWire = z.infer<typeof TemplateDeletion>;
