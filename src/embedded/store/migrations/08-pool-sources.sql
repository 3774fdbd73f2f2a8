-- A pool's record holds what its owner asked for; until now that was a template's name.
UPDATE pools SET body = json_set(
  json_remove(body, '$.templateName'),
  '$.source', json_object('templateName', json_extract(body, '$.templateName')),
  '$.updateStrategy', json_object('autoUpdate', json('true'), 'maxUnavailable', '25%')
) WHERE json_type(body, '$.source') IS NULL;
