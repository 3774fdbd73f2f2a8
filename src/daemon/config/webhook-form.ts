import { z } from 'zod';
import { parseUrl } from './fields.ts';

const FORM = /^(\S+)\s+secretFile=(\/[^\0]{1,4095})$/;

/**
 * Reads `URL secretFile=/PATH`: an address that is told of approvals, and the file with the secret
 * of its signatures. A fault never quotes the URL, which may be as good as a secret.
 */
export const webhook = z
  .string('must be text')
  .max(8_192)
  .transform((text, context) => {
    const [, address = '', secretFile = ''] = FORM.exec(text.trim()) ?? [];
    const url = parseUrl(address);
    if (
      url &&
      /^https?:$/.test(url.protocol) &&
      url.username === '' &&
      url.password === '' &&
      url.hash === ''
    )
      return { url: url.href, secretFile };
    context.addIssue(
      'must be URL secretFile=/PATH each: http:// or https://, without user and fragment',
    );
    return z.NEVER;
  });
