import { z } from 'zod';
import { maybe, name, text, timestamp } from './common.ts';

const role = z.enum(['user', 'admin']);
const expiresAt = timestamp.transform((value) => Date.parse(value));
const own = { name: maybe(name), description: maybe(text(1_024)), expiresAt: maybe(expiresAt) };

/** `team`, `user` and `role` are an admin's to choose; the operation's row refuses them from others. */
export const CreateApiKeyBody = z.object({ ...own, team: maybe(name), user: maybe(name), role: maybe(role) });
export const AdminCreateApiKeyBody = z.object({ ...own, team: name, user: name, role: maybe(role) });

export const IssuedApiKey = z.object({
  apiKey: z.string(),
  keyId: z.string(),
  name: z.string(),
  user: z.string(),
  team: z.string(),
  role,
  description: z.string(),
  issuedAt: timestamp,
  expiresAt: timestamp,
});

export type IssuedApiKeyWire = z.infer<typeof IssuedApiKey>;
