import { z } from 'zod';
import { name, text, timestamp } from './common.ts';

const role = z.enum(['user', 'admin']);
const expiresAt = timestamp.transform((value) => Date.parse(value));
const own = { name: name.exactOptional(), description: text(1_024).exactOptional(), expiresAt: expiresAt.exactOptional() };

/** `team`, `user` and `role` are an admin's to choose; the operation's row refuses them from others. */
export const CreateApiKeyBody = z.object({ ...own, team: name.exactOptional(), user: name.exactOptional(), role: role.exactOptional() });
export const AdminCreateApiKeyBody = z.object({ ...own, team: name, user: name, role: role.exactOptional() });

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
