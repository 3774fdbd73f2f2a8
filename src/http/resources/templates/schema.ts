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
    'A [template](templates.md) as JSON, at most 256 KiB. Unknown fields are refused.',
  ),
  syncSource: maybe(z.literal('global')).describe(
    "Only at a fleet's manager: creates the template on [all its " +
      'clusters](fleet.md#global-templates).',
  ),
});

export const UpdateTemplateBody = z.object({
  crdJson: maybe(crdJson).describe(
    'The whole template. `description`, `docs` and `poolSizing` stay unchanged if it omits ' +
      'them.',
  ),
  description: maybe(text(1_024)).describe(
    'An empty text removes the description. The same applies to `docs`.',
  ),
  docs: maybe(text(65_536)),
  poolSizing: maybe(z.enum(POOL_SIZINGS)),
  syncSource: maybe(z.enum(['global', ''])).describe(
    "Only at a fleet's manager. `global`: the template is distributed to [all its " +
      'clusters](fleet.md#global-templates). If empty, the template is no longer distributed.',
  ),
});

export const TemplateListQuery = z.object({ clusterID: ofCluster, limit, offset });
export const TemplateQuery = z.object({ clusterID: ofCluster });

const Template = z
  .object({
    name: z.string(),
    version: z.string().describe('A whole number, which grows with each change.'),
    description: maybe(z.string()),
    createdAt: timestamp,
    cpu: z.string().describe('CPU of an instance.'),
    memory: z.string().describe('Memory of an instance.'),
    ...InstanceShape,
    syncSource: maybe(z.literal('global')).describe(
      'The template comes from a file of `templatesDir`, or is the same on all clusters of ' +
        'a fleet. Absent if it was created here.',
    ),
    fleet: maybe(z.enum(['source', 'copy'])).describe(
      'The template is the same on [all clusters of a fleet](fleet.md#global-templates): ' +
        '`source` at the manager, which can change it; `copy` at the other clusters. ' +
        'Otherwise absent.',
    ),
    docs: maybe(z.string()).describe('Documentation for people.'),
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
        '`Synced`: the cluster has the current version. `Pending`: not yet. `Conflict`: the ' +
          'cluster has its own template of this name. `Refused`: the cluster cannot run the ' +
          'template. `Absent`: the cluster does not have the template. `Unsupported`: the ' +
          "cluster's version does not support global templates. `Unreachable`: the cluster " +
          'does not answer.',
      ),
    version: maybe(z.string()).describe('Version on the cluster.'),
    message: maybe(z.string()).describe("The cluster's reason for not having the current version."),
    at: maybe(timestamp).describe(
      'When the cluster reported this state, or, if it does not answer, when it was last ' +
        'connected. Absent if it has not connected since the daemon started.',
    ),
  })
  .meta({ id: 'TemplateCluster' });
export const TemplateClusterList = z
  .object({
    total: z.int(),
    items: z
      .array(TemplateCluster)
      .describe('Clusters by id. Empty if the template is not global.'),
  })
  .meta({ id: 'TemplateClusterList' });

export const TemplateDeletion = z
  .object({ name: z.string(), status: z.literal('deleted') })
  .meta({ id: 'TemplateDeletion' });

export type TemplateClusterWire = z.infer<typeof TemplateCluster>;
export type TemplateWire = z.infer<typeof Template>;
export type TemplateDeletionWire = z.infer<typeof TemplateDeletion>;
