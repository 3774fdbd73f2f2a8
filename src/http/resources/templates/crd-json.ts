import { z } from 'zod';
import { invalidArgument, Refusal } from '../../../model/refusals.ts';
import {
  MAX_TEMPLATE_BYTES,
  SandboxTemplateSchema,
  type SandboxTemplateDocument,
} from '../../../model/templates/template.ts';
import { parseStrictJson } from '../../corridor/strict-json.ts';
import { check } from '../../corridor/validation.ts';

const FIELD = 'crdJson';
const Enclosed = z.object({ [FIELD]: SandboxTemplateSchema });

/**
 * The template document that a `crdJson` holds: as strict as a body, and unknown fields are
 * refused. Refusals name its fields after `crdJson.`
 */
export const templateIn = (crdJson: string): SandboxTemplateDocument => {
  if (Buffer.byteLength(crdJson) > MAX_TEMPLATE_BYTES)
    throw new Refusal('PAYLOAD_TOO_LARGE', `${FIELD} is larger than ${MAX_TEMPLATE_BYTES} bytes`);
  return check(Enclosed, { [FIELD]: treeOf(crdJson) })[FIELD];
};

const treeOf = (crdJson: string): unknown => {
  try {
    return parseStrictJson(Buffer.from(crdJson, 'utf8'));
  } catch (error) {
    const field = error instanceof Refusal ? error.detail?.['field'] : undefined;
    if (!(error instanceof Refusal) || typeof field !== 'string') throw error;
    throw invalidArgument(
      field === 'body' ? FIELD : `${FIELD}.${field}`,
      error.message.slice(field.length + 2),
    );
  }
};
